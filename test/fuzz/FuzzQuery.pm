# FuzzQuery - random queries over the tables of FuzzSchema.
#
# A query is a hash:
#   name   what kind it is
#   sql    the statements, for psql; after it the session is as it was before
#   select the SELECT in them, where they are none themselves
#   mode   what must be the same with and without gpusort:
#          exact     all output
#          multiset  the rows, in whatever order
#          ranked    the keys of the rows, in order; the rows, as far as they decide
#          errors    SQLSTATEs only
#   wire   undef, or what a client of the protocol asks for, who gets the rows then in place of psql: simple, or
#          formats and rows
#   rank   ranked: a query of all rows that may be in the output, before each its
#          place in the order
#   whole  ranked: all rows of rank must come
#   settings  that make what it is about likely, if any
#
# Queries have no volatile functions but one that returns its argument, and no LIMIT below anything unless the order
# is total: PostgreSQL must owe the answer, not just give it.
package FuzzQuery;

use strict;
use warnings;

use Carp;
use Exporter qw(import);
use FuzzParts;
use FuzzPlans;
use FuzzRandom;
use FuzzTypes;

our @EXPORT = qw(random_query);
our @EXPORT_OK = qw(way_out);

# --- SELECT ---------------------------------------------------------------------------------------

# An output that needs a sort of its own.
sub _subquery
{
	my ($context) = @_;
	my $inner = from_one($context, 'i', 2000);
	my $keys = join ', ', total_keys($context, $inner);
	my $n = between(2, 9);

	return weighted(
		40 => "ARRAY(SELECT i.id FROM $inner->{sql}@{[ where_of($inner) ]} ORDER BY $keys LIMIT 50)",
		40 => "(SELECT string_agg(q.id::text, ',') "
			. "FROM (SELECT i.id FROM $inner->{sql}@{[ where_of($inner, \"i.id % $n = a.id % $n\") ]} "
			. "ORDER BY $keys LIMIT 3) q)",
		20 => "EXISTS (SELECT 1 FROM $inner->{sql}@{[ where_of($inner, \"i.id % $n = a.id % $n\") ]} ORDER BY $keys)");
}

# SELECT ... ORDER BY.  Options: total => no ties; limit => percent of LIMIT; plain => nothing that
# fails or locks; partial => perhaps not all rows are read, so nothing that fails in one of them.
sub _select
{
	my ($context, %option) = @_;
	my $from = $option{from} // random_from($context);
	my $total = $option{total} // chance(55);
	my $limit = chance($option{limit} // 25) ? random_limit($from->{table}{rows}) : '';
	my @columns = some_of(weighted(20 => 0, 50 => between(1, 3), 30 => 20), @{ $from->{scope} });
	# long values are not multiplied by a join
	my @outputs = map { $_->{type}{wide} && @{ $from->{ids} } > 1 ? "md5($_->{sql})" : $_->{sql} } @columns;
	push @outputs, @{ $from->{also} || [] };
	my $error = !$option{plain} && !$option{partial} && $limit eq '' && chance(4);
	my $suffix = '';
	my @keys;

	push @outputs, 'a' if chance(4) && !$from->{no_row} && $from->{sql} =~ /^t\d/;
	push @outputs, random_key($context, one_of(@{ $from->{scope} }), $from->{ids}[0]) if chance(20);
	$outputs[-1] =~ s/ USING .*// if @outputs;
	@outputs = shuffled(@outputs, @{ $from->{ids} }) if !$total || !@outputs || chance(60);
	if ($error)
	{
		my $k = between(0, $from->{table}{rows});
		push @outputs, one_of("1000 / ($from->{ids}[0] - $k)", "CASE WHEN $from->{ids}[0] = $k THEN ('x' || $k)::int END");
	}
	if (!$option{plain} && $from->{table}{rows} <= 300 && $from->{ids}[0] eq 'a.id' && chance(15))
	{
		push @outputs, _subquery($context);
	}
	if ($total)
	{
		@keys = total_keys($context, $from);
	}
	else
	{
		@keys = random_keys($context, between(1, 3), $from->{ids}[0], @{ $from->{scope} });
		push @keys, one_of(@keys) if chance(5);
	}
	push @keys, "1000 / ($from->{ids}[0] - @{[ between(0, $from->{table}{rows}) ]})" if $error && chance(30);
	if (!$option{plain} && $from->{sql} =~ /^t\d a$/ && chance(6))
	{
		$suffix = one_of(' FOR UPDATE', ' FOR SHARE', ' FOR KEY SHARE');
		$limit =~ s/FETCH FIRST (\d+) ROWS WITH TIES/LIMIT $1/;
	}
	my $keys = join ', ', @keys;
	my $volatile = chance(5) ? "fz.same($from->{ids}[0]) % @{[ between(2, 9) ]} <> 1" : undef;
	my $rest = "FROM $from->{sql}" . where_of($from, $volatile);
	my $list = aliased(@outputs);
	return {
		sql => "SELECT $list $rest ORDER BY $keys$limit$suffix",
		mode => $total ? 'exact' : 'ranked',
		rank => $total ? undef : "SELECT rank() OVER (ORDER BY $keys), $list $rest",
		whole => $limit eq '',
		columns => scalar @outputs
	};
}

# Rows in an order that leaves no ties, from a query of any kind.  Options: from; those of _select.
sub _ordered
{
	my ($context, %option) = @_;
	my $make = weighted(
		50 => \&_select,
		14 => \&window_query,
		10 => \&distinct_on_query,
		10 => \&group_query,
		16 => sub { my ($context, %option) = @_; return join_query($context, %option,
		from => $option{from} // from_join($context)) });
	return $make->($context, %option, total => 1);
}

# --- statements round a SELECT --------------------------------------------------------------------

sub _plain
{
	my ($context) = @_;
	my $query = _select($context);

	return { %$query, name => 'select' } unless chance(6);
	$query = _select($context, total => 1, plain => 1);
	return { %$query, name => 'fetch count', select => $query->{sql},
		sql => "\\set FETCH_COUNT @{[ one_of(1, 7, 1000) ]}\n$query->{sql};\n\\set FETCH_COUNT 0\nSELECT" };
}

sub _cursor
{
	my ($context) = @_;
	my $query = _ordered($context, partial => 1);
	my $scroll = $query->{sql} =~ / FOR (?:UPDATE|SHARE|KEY)/ ? 'NO SCROLL' : weighted(60 => 'SCROLL', 40 => 'NO SCROLL');
	my $hold = chance(30) && $query->{sql} !~ / FOR (?:UPDATE|SHARE|KEY)/;
	my @moves;

	for (1 .. between(2, 12))
	{
		my $n = one_of(1, 2, 10, 100, 5000);
		push @moves, ($scroll eq 'SCROLL' || chance(2)) && chance(60)
			? weighted(30 => "FETCH BACKWARD $n FROM c", 10 => 'FETCH PRIOR FROM c', 10 => 'FETCH LAST FROM c',
				10 => 'FETCH FIRST FROM c', 10 => "FETCH ABSOLUTE @{[ between(-20, 200) ]} FROM c",
				10 => "FETCH RELATIVE @{[ between(-9, 9) ]} FROM c", 10 => "MOVE BACKWARD $n FROM c",
					5 => 'MOVE BACKWARD ALL FROM c', 5 => 'FETCH BACKWARD ALL FROM c')
			: weighted(60 => "FETCH $n FROM c", 15 => 'FETCH NEXT FROM c', 10 => 'FETCH ALL FROM c', 15 => "MOVE $n FROM c");
	}
	if ($hold)
	{
		splice @moves, below(scalar @moves), 0, 'COMMIT', 'BEGIN';
	}
	elsif (chance(20))
	{
		splice @moves, below(scalar @moves), 0, 'SAVEPOINT s', 'SELECT 1/0', 'ROLLBACK TO s';
	}
	push @moves, 'CLOSE c' if chance(70) || $hold;
	# another one that is open at the same time
	my $other = chance(20) ? _ordered($context, plain => 1) : undef;
	@moves = ("DECLARE d CURSOR FOR $other->{sql}",
		map { ($_, chance(50) ? 'FETCH ' . one_of(1, 3, 50, 1000) . ' FROM d' : ()) } @moves) if $other;
	return { name => 'cursor', select => $query->{sql}, mode => 'exact',
		sql => join(";\n", 'BEGIN', "DECLARE c $scroll CURSOR @{[ $hold ? 'WITH HOLD ' : '' ]}FOR $query->{sql}", @moves,
			one_of('COMMIT', 'ROLLBACK'), $hold ? ('CLOSE ALL') : ()) };
}

# Rows that are put into a table, and read from there in the order in which they lie there.
sub _create
{
	my ($context) = @_;
	return _leaving(_ordered($context), 'create table as', 'create table as', 'insert', 'insert',
		'materialized view');
}

sub _prepared
{
	my ($context) = @_;
	my $from = random_from($context);
	my $rows = $from->{table}{rows};

	$from->{where} = join ' AND ', grep { defined } $from->{where}, "$from->{ids}[0] > \$1";
	my $query = _ordered($context, from => $from, limit => 0, plain => 1);
	my $limit = $query->{sql} =~ / (?:LIMIT|OFFSET|FETCH FIRST) \S+(?: ROWS WITH TIES)?$/ ? '' : ' LIMIT $2';
	my $sql = "PREPARE p (int8, int8) AS $query->{sql}$limit";

	for (1 .. between(1, 7))
	{
		$sql .= ";\nEXECUTE p (@{[ one_of(0, between(0, $rows)) ]}, @{[ one_of('NULL', 0, 1, between(0, $rows)) ]})";
	}
	return { name => 'prepared', select => $query->{sql} =~ s/\$1/0/gr, mode => 'exact', sql => "$sql;\nDEALLOCATE p" };
}

# Rows changed by way of a join.
sub _modify
{
	my ($context) = @_;
	my ($table) = shuffled(grep { !$_->{foreign} } @{ $context->{tables} });
	my $name = $table->{name};
	my @scope = scope_of($table, $name);
	my $other = from_one($context, 'b', $table->{rows} > 100 ? 60 : 600);
	my $pair = join ' AND ', some_of(between(1, 2), equal_pairs($context, \@scope, $other->{scope}));
	$pair = "$name.id = b.id" if $pair eq '';
	my $where = where_of($other, $pair);
	my $column = $table->{columns}[ below(scalar @{ $table->{columns} }) ]{name};
	my $change = weighted(
		35 => "DELETE FROM $name USING $other->{sql}$where",
		25 => "DELETE FROM $name WHERE NOT EXISTS (SELECT 1 FROM $other->{sql}$where)",
		20 => "UPDATE $name SET $column = $name.$column FROM $other->{sql}$where",
		20 => "MERGE INTO $name USING (SELECT DISTINCT b.id AS bid "
			. "FROM $other->{sql}@{[ where_of($other) ]}) s ON $name.id = s.bid WHEN MATCHED AND s.bid % 2 = 0 THEN DELETE "
			. "WHEN MATCHED THEN UPDATE SET $column = $name.$column WHEN NOT MATCHED THEN DO NOTHING");
	return { name => 'modify', settings => [ chance(60) ? ('enable_hashjoin = off', 'enable_nestloop = off') : () ],
		mode => 'exact', sql => "BEGIN;\n$change;\nSELECT count(*), sum(id), sum(fz.h(id::int8, 7)::numeric) "
			. "FROM $name;\nROLLBACK" };
}

sub _plpgsql
{
	my ($context) = @_;
	my $query = _ordered($context, partial => 1);
	my $inner = from_one($context, 'i', 2000);
	my $keys = join ', ', total_keys($context, $inner);
	my $stop = chance(30) ? 'EXIT WHEN n >= ' . one_of(1, 5, 100) . '; ' : '';
	my $body = weighted(
		50 => "FOR x IN $query->{sql} LOOP n := n + 1; RETURN NEXT x::text; ${stop}END LOOP;",
		15 => "FOR x IN EXECUTE q LOOP n := n + 1; RETURN NEXT x::text; ${stop}END LOOP;",
		20 => "FOR y IN 1 .. @{[ between(2, 4) ]} LOOP n := 0; BEGIN FOR x IN $query->{sql} LOOP n := n + 1; "
			. "RETURN NEXT x::text; IF n = @{[ between(1, 50) ]} THEN PERFORM 1 / (y - 2); END IF; ${stop}END LOOP; "
			. "EXCEPTION WHEN division_by_zero THEN RETURN NEXT 'caught'; END; END LOOP;",
		15 => "FOR x IN $query->{sql} LOOP n := n + 1; RETURN NEXT x::text; "
			. "FOR z IN SELECT i.* FROM $inner->{sql}@{[ where_of($inner, 'i.id % 5 = n % 5') ]} "
			. "ORDER BY $keys LIMIT 10 LOOP RETURN NEXT z::text; END LOOP; EXIT WHEN n >= 20; END LOOP;",
		15 => "OPEN c FOR $query->{sql}; LOOP FETCH c INTO x; EXIT WHEN NOT FOUND; n := n + 1; RETURN NEXT x::text; "
			. "${stop}END LOOP; CLOSE c;");
	my $function = "CREATE FUNCTION g() RETURNS SETOF text LANGUAGE plpgsql AS \$body\$ DECLARE x record; z record; "
		. "n int := 0; c refcursor; q text := \$q\$$query->{sql}\$q\$; BEGIN $body END \$body\$";

	return { name => 'plpgsql', select => $query->{sql}, mode => 'exact',
		sql => "$function;\nSELECT * FROM g();\n" . (chance(30) ? "SELECT * FROM g();\n" : '') . 'DROP FUNCTION g()' };
}

# A set-returning SQL function, whose query is left half-way where LIMIT stops it.
sub _function
{
	my ($context) = @_;
	my $query = _ordered($context, plain => 1);
	my $text = "SELECT q::text FROM ($query->{sql}) q";
	my $call = weighted(40 => 'SELECT g()', 30 => 'SELECT * FROM g()', 30 => 'SELECT g() LIMIT 5');

	return { name => 'sql function', select => $query->{sql}, mode => 'exact',
		sql => "CREATE FUNCTION g() RETURNS SETOF text "
			. "LANGUAGE sql STABLE AS \$body\$ $text \$body\$;\n$call;\nDROP FUNCTION g()" };
}

sub _nested
{
	my ($context) = @_;
	my $query = _ordered($context, plain => 1);

	return weighted(
		40 => { name => 'array', mode => 'exact', sql => "SELECT ARRAY(SELECT o1 FROM ($query->{sql}) q)" },
		30 => { name => 'row_number', mode => 'exact', sql => "SELECT row_number() OVER (), q.* FROM ($query->{sql}) q" },
		30 => { name => 'with', mode => 'exact',
		sql => "WITH w AS MATERIALIZED ($query->{sql}) SELECT * FROM w UNION ALL SELECT * FROM w" });
}

# A few rows that are long, up to longer than a chunk of the staging pool.
sub _long
{
	my ($context) = @_;
	my $from = from_one($context, 'a', 1000);
	my $keys = join ', ', total_keys($context, $from);
	my $n = 1 + int($from->{table}{rows} / between(1, 8));
	my $length = one_of(70000, 800000, 4100000, 9000000);
	my $where = where_of($from);
	my $list = "a.id AS o1, CASE WHEN a.id % $n = 0 THEN repeat('q', $length) END AS o2, "
		. "@{[ one_of(@{ $from->{scope} })->{sql} ]} AS o3";

	return { name => 'long rows', mode => 'exact',
		sql => "SELECT o1, length(o2), o3 FROM (SELECT $list FROM $from->{sql}$where "
			. "ORDER BY $keys@{[ one_of(' OFFSET 0', ' LIMIT 500') ]}) s" };
}

# COPY's options, as text.
sub _copy_options
{
	return one_of('', ' (FORMAT csv, HEADER)', q{ (FORMAT csv, FORCE_QUOTE *, NULL 'nil')}, ' (FORMAT binary)',
		q{ (ENCODING 'SQL_ASCII', DELIMITER '|')});
}

# What a client of the protocol may ask for beside the query: formats of columns, of so many or all of them alike, and
# most rows at once.
sub _wire_options
{
	my ($columns) = @_;
	my @formats = $columns && chance(40) ? map({ chance(50) ? 1 : 0 } 1 .. $columns) : (chance(80) ? 1 : 0);

	return { simple => chance(10), formats => \@formats, rows => chance(15) ? one_of(1, 100, 5000) : 0 };
}

# What has a query's rows leave by that way: before and after are statements round it, wire is as above.  Options:
# columns: how many, if that is known; query: its text, which insert needs.
sub way_out
{
	my ($way, %option) = @_;
	my $read = ";\nSET LOCAL max_parallel_workers_per_gather = 0;\nTABLE made;\nROLLBACK";
	my $file = q{'fuzz.' || current_database()};
	my $begin = "SELECT current_setting('data_directory') || '/' || $file AS made \\gset\nCOPY (";
	my $end = ";\nSELECT pg_read_binary_file($file)";
	my $kind = one_of('', '', 'UNLOGGED ', 'TEMP ');

	return { before => '', after => '', wire => _wire_options($option{columns}) } if $way eq 'protocol';
	return { before => 'COPY (', after => ') TO STDOUT' . _copy_options() } if $way eq 'copy';
	return { before => $begin, after => ") TO :'made'" . _copy_options() . $end } if $way eq 'copy to a file';
	return { before => "SELECT 'cat > ' || $file AS made \\gset\nCOPY (",
		after => ") TO PROGRAM :'made'" . _copy_options() . $end } if $way eq 'copy to a program';
	return { before => "BEGIN;\nCREATE ${kind}TABLE made AS ", after => $read } if $way eq 'create table as';
	return { before => "BEGIN;\nCREATE MATERIALIZED VIEW made AS ", after => ";\nREFRESH MATERIALIZED VIEW made$read" }
		if $way eq 'materialized view';
	return { before => "BEGIN;\nCREATE ${kind}TABLE made AS $option{query} WITH NO DATA;\nINSERT INTO made ",
		after => (chance(30) ? ' RETURNING o1' : '') . $read } if $way eq 'insert';
	croak "no such way: $way";
}

# A query whose rows leave by one of these ways; rows that are locked do so by the first.
sub _leaving
{
	my ($query, @ways) = @_;
	my $way = $query->{sql} =~ / FOR / ? $ways[0] : one_of(@ways);
	my $round = way_out($way, columns => $query->{columns}, query => $query->{sql});

	return { name => $way, select => $query->{sql}, mode => 'exact', wire => $round->{wire},
		sql => "$round->{before}$query->{sql}$round->{after}" };
}

sub _copy
{
	my ($context) = @_;
	return _leaving(_ordered($context), 'copy', 'copy', 'copy to a file', 'copy to a program');
}

# Every byte of an answer, by the protocol, in which a client asks for text or binary.
sub _wire
{
	my ($context) = @_;
	return _leaving(_ordered($context), 'protocol');
}

sub _explain
{
	my ($context) = @_;
	my $query = one_of(\&_select, \&_ordered, \&_ordered, \&recursive_query)->($context);
	my @options = some_of(between(1, 4), 'ANALYZE', 'ANALYZE', 'VERBOSE', 'ANALYZE, BUFFERS',
		'FORMAT ' . one_of(qw(json xml yaml)), 'ANALYZE, TIMING off');
	my %seen;
	@options = grep { !$seen{$_}++ } map { split /, / } @options;

	return { name => 'explain', select => $query->{sql}, mode => 'errors',
		sql => 'EXPLAIN (' . join(', ', @options) . ") $query->{sql}" };
}

sub random_query
{
	my ($context) = @_;
	my $make = weighted(
		28 => \&_plain,
		8 => \&distinct_query,
		7 => \&distinct_on_query,
		10 => \&group_query,
		9 => \&aggregate_query,
		13 => \&window_query,
		6 => \&first_rows_query,
		14 => \&join_query,
		8 => \&set_query,
		2 => \&recursive_query,
		9 => \&_cursor,
		5 => \&_create,
		5 => \&_prepared,
		4 => \&_modify,
		5 => \&_plpgsql,
		3 => \&_function,
		4 => \&_nested,
		4 => \&_copy,
		4 => \&_wire,
		1 => \&_long,
		3 => \&_explain);
	return $make->($context);
}

1;
