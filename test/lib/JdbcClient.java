import java.security.MessageDigest;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.Statement;
import java.sql.Types;

/*
 * JdbcClient - asks for one query's rows in each way that PostgreSQL's JDBC driver has, and prints digests of them.
 *
 * Run by test/t/clients.t: java -cp DRIVER JdbcClient.java URL QUERY.  URL ends with its last parameter.
 */
public class JdbcClient
{
	/* Returns how many rows there are, and a digest of their values as text and as they came. */
	private static String digest(ResultSet rows) throws Exception
	{
		MessageDigest md5 = MessageDigest.getInstance("MD5");
		int columns = rows.getMetaData().getColumnCount();
		StringBuilder text = new StringBuilder();
		int count = 0;

		while (rows.next())
		{
			count++;
			for (int i = 1; i <= columns; i++)
			{
				byte[] bytes = rows.getBytes(i);

				/* of bytes that came as such the driver's text is an object's number */
				if (rows.getMetaData().getColumnType(i) != Types.BINARY)
					md5.update(String.valueOf(rows.getString(i)).getBytes("UTF-8"));
				if (bytes != null)
					md5.update(bytes);
			}
		}
		for (byte b : md5.digest())
			text.append(String.format("%02x", b));
		return count + " " + text;
	}

	private static void ask(String url, String query, String parameters, int fetchSize) throws Exception
	{
		try (Connection connection = DriverManager.getConnection(url + parameters))
		{
			/* a fetch size needs a transaction */
			connection.setAutoCommit(false);
			try (PreparedStatement statement = connection.prepareStatement(query))
			{
				statement.setFetchSize(fetchSize);
				/* the driver names statements that it has run so often */
				for (int i = 0; i < 2; i++)
				{
					try (ResultSet rows = statement.executeQuery())
					{
						System.out.println(parameters + " fetch size " + fetchSize + ": " + digest(rows));
					}
				}
			}
			try (Statement statement = connection.createStatement())
			{
				statement.setMaxRows(777);
				try (ResultSet rows = statement.executeQuery(query))
				{
					System.out.println(parameters + " some rows: " + digest(rows));
				}
			}
			connection.commit();
		}
	}

	public static void main(String[] args) throws Exception
	{
		String[] ways = {"", "&prepareThreshold=-1", "&prepareThreshold=1&binaryTransfer=false",
			"&preferQueryMode=simple", "&preferQueryMode=extendedForPrepared&prepareThreshold=1"};

		for (String way : ways)
		{
			for (int fetchSize : new int[] {0, 100, 100000})
				ask(args[0], args[1], way, fetchSize);
		}
	}
}
