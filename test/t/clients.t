# Clients that people use, over each kind of connection: what they print of rows that all processes form is, to the
# byte, what they print without gpusort; a cancel and an end in the middle leave nothing behind.  A client that is not
# installed is skipped.
use strict;
use warnings;

use Cwd qw(abs_path);
use Digest::MD5 qw(md5_hex);
use File::Basename qw(dirname);
use GpuSortNode;
use IO::Socket::INET;
use IPC::Run ();
use PostgreSQL::Test::Utils qw(append_to_file slurp_file);
use Test::More;

my $library = abs_path(dirname(__FILE__) . '/../lib');
my $scratch = PostgreSQL::Test::Utils::tempdir();
my $port = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1)->sockport;
my $node = GpuSortNode->new('main', port => $port);

# Runs a program; returns its status and what it prints.
sub printed
{
	my @command = @_;
	my $status = IPC::Run::run(\@command, '<', \undef, '>', \my $output, '2>', \my $error,
		IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));

	return ($status, $output . $error);
}

sub is_there
{
	my ($program) = @_;
	return grep { -x "$_/$program" } split(/:/, $ENV{PATH}), '/usr/sbin';
}

# A file of the test's own with this text.
sub file
{
	my ($name, $text) = @_;
	append_to_file("$scratch/$name", $text);
	return "$scratch/$name";
}

# --- the server, with TLS and, where Kerberos is installed, GSS -----------------------------------

my @settings;
my $tls = is_there('openssl') && (printed('openssl', 'req', '-new', '-x509', '-days', '2', '-nodes', '-subj',
	'/CN=localhost', '-out', "$scratch/server.crt", '-keyout', "$scratch/server.key"))[0];
chmod 0600, "$scratch/server.key" if $tls;
push @settings, 'ssl = on', "ssl_cert_file = '$scratch/server.crt'", "ssl_key_file = '$scratch/server.key'" if $tls;

my $gss = !grep { !is_there($_) } qw(krb5kdc kdb5_util kadmin.local kinit);
my $center;
if ($gss)
{
	my $kdc_port = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1)->sockport;

	$ENV{KRB5_CONFIG} = file('krb5.conf', "[libdefaults]\ndefault_realm = EXAMPLE.COM\ndns_lookup_realm = false\n"
		. "dns_lookup_kdc = false\nrdns = false\ndns_canonicalize_hostname = false\n[realms]\nEXAMPLE.COM = {\n"
		. "kdc = 127.0.0.1:$kdc_port\n}\n");
	$ENV{KRB5_KDC_PROFILE} = file('kdc.conf', "[kdcdefaults]\nkdc_listen = 127.0.0.1:$kdc_port\n"
		. "kdc_tcp_listen = 127.0.0.1:$kdc_port\n[realms]\nEXAMPLE.COM = {\ndatabase_name = $scratch/principal\n"
		. "key_stash_file = $scratch/stash\n}\n");
	$ENV{KRB5CCNAME} = "$scratch/tickets";
	local $ENV{PATH} = "$ENV{PATH}:/usr/sbin";
	$gss = (printed(qw(kdb5_util create -s -P secret)))[0]
		&& (printed('kadmin.local', '-q', 'addprinc -pw secret user'))[0]
		&& (printed('kadmin.local', '-q', 'addprinc -randkey postgres/localhost'))[0]
		&& (printed('kadmin.local', '-q', "ktadd -k $scratch/keytab postgres/localhost"))[0];
	$center = IPC::Run::start([ 'krb5kdc', '-n' ], '<', \undef, '>&', "$scratch/center.log") if $gss;
	my $password = 'secret';
	$gss &&= wait_until(sub { IPC::Run::run([ 'kinit', 'user' ], '<', \$password, '>&', \my $said) });
	push @settings, "krb_server_keyfile = '$scratch/keytab'" if $gss;
}

$node->init(conf => [ @settings, q{listen_addresses = '127.0.0.1'}, 'max_parallel_workers_per_gather = 2',
	'max_parallel_workers = 12', 'max_worker_processes = 16', 'parallel_setup_cost = 0', 'parallel_tuple_cost = 0',
	'min_parallel_table_scan_size = 0', 'gpusort.force = on', 'enable_hashagg = off' ]);
$node->start;
$node->wait_service;
if ($gss)
{
	$gss = $node->psql('postgres', 'SELECT 1', connstr => "host=localhost hostaddr=127.0.0.1 port=$port "
		. 'dbname=postgres gssencmode=require', stderr => \my $said) == 0;
	note $said unless $gss;
}
$node->safe_psql('postgres', q{
	CREATE EXTENSION gpusort;
	CREATE ROLE native SUPERUSER LOGIN;
	ALTER ROLE native SET gpusort.enable = off;
	CREATE ROLE formed SUPERUSER LOGIN;
	CREATE TABLE t AS SELECT i AS id, i * 7919 % 8009 AS g, 'Zeile "' || i || E'", ä\t' || repeat('x', i % 50) AS v,
			CASE WHEN i % 7 <> 0 THEN i / 7.0 END AS n, i / 3.0::float8 AS f, i % 2 = 0 AS b,
			decode(md5(i::text), 'hex') AS by, '2020-01-01'::timestamptz + i * interval '1 h' AS tz,
			'2020-01-01'::date + i AS d, i * interval '1 day 1 s' AS iv, md5(i::text)::uuid AS u,
			ARRAY[i, NULL, -i] AS ia, ARRAY['a b', NULL, 'ä"' || i] AS ta, jsonb_build_object('a', i, 'b', 'ä') AS j,
			int4range(i, i + 5) AS r, NULL::text AS nothing, '' AS empty
		FROM generate_series(1, 6000) i;
	CREATE TABLE large AS SELECT i AS id, i * 7919 % 8009 AS g, 'row ' || i || repeat('x', 100) AS v
		FROM generate_series(1, 60000) i;
	ANALYZE;
});
my $query = 'SELECT *, sum(id) OVER (PARTITION BY g ORDER BY id) AS total FROM t ORDER BY g, id';
my $plain = 'SELECT * FROM t ORDER BY g, id';
my $large = 'SELECT * FROM large ORDER BY g, id';

sub formed
{
	return $node->ask('SELECT formed_rows FROM gpusort_stats');
}

sub nothing_left
{
	return wait_until(sub {
		$node->ask(q{SELECT (SELECT count(*) FROM gpusort_jobs) + count(*) FROM pg_stat_activity
			WHERE backend_type = 'parallel worker' OR (usename = 'formed' AND pid <> pg_backend_pid())}) == 0;
	});
}

# The first lines that differ.
sub difference
{
	my @texts = map { [ split /\n/ ] } @_;
	my $line = 0;

	$line++ while ($texts[0][$line] // '') eq ($texts[1][$line] // '') && $line < @{ $texts[0] };
	return join "\n", "line $line of @{[ scalar @{ $texts[0] } ]} and @{[ scalar @{ $texts[1] } ]}",
		map { substr $_->[$line] // 'none', 0, 1000 } @texts;
}

# What a client prints as the user for whom gpusort is off, and as the other, is the same.  Returns how many rows
# workers have formed.
sub same
{
	my ($what, $ask) = @_;
	my ($succeeded, $native) = $ask->('native');

	ok($succeeded, "$what: an answer") or diag substr $native, -1000;
	my $before = formed();
	my (undef, $ours) = $ask->('formed');
	ok($ours eq $native, "$what: the same bytes") or diag difference($native, $ours);
	return formed() - $before;
}

my $tcp = "hostaddr=127.0.0.1 port=$port";
my %connections = (
	'a UNIX socket' => 'host=' . $node->host . " port=$port",
	TCP => "$tcp sslmode=disable gssencmode=disable",
	TLS => $tls ? "$tcp sslmode=require gssencmode=disable" : undef,
	GSS => $gss ? "host=localhost $tcp gssencmode=require" : undef);
my %proofs = (TLS => 'SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()',
	GSS => 'SELECT encrypted FROM pg_stat_gssapi WHERE pid = pg_backend_pid()');

# --- psql and libpq -------------------------------------------------------------------------------

chomp(my $include = `@{[ $ENV{PG_CONFIG} || 'pg_config' ]} --includedir`);
chomp(my $libdir = `@{[ $ENV{PG_CONFIG} || 'pg_config' ]} --libdir`);
my $client = "$scratch/libpq_client";
my @compile = ('gcc', '-O1', "-I$include", '-o', $client, "$library/libpq_client.c", "-L$libdir",
	"-Wl,-rpath,$libdir", '-lpq');
my ($compiled, $why_not) = is_there('gcc') ? printed(@compile) : (0, 'there is no gcc');

for my $kind (sort keys %connections)
{
	my $connection = $connections{$kind};
	SKIP:
	{
		skip "$kind is not to be had", 1 unless defined $connection;
		my $psql = sub {
			my ($user, @arguments) = @_;
			return printed('psql', '-XqAt', '-d', "$connection dbname=postgres user=$user", @arguments);
		};
		is(($psql->('formed', '-c', $proofs{$kind}))[1], "t\n", "$kind: it is") if $proofs{$kind};
		cmp_ok(same("psql by $kind", sub { $psql->($_[0], '-c', $query) }), '>', 0, 'workers have formed rows');
		cmp_ok(same("psql's \\copy by $kind", sub { $psql->($_[0], '-c', "\\copy ($query) TO STDOUT (FORMAT csv)") }),
			'>', 0, 'formed');
		same("psql by $kind, FETCH_COUNT", sub { $psql->($_[0], '-v', 'FETCH_COUNT=100', '-c', $query) });
		skip "libpq: $why_not", 1 unless $compiled;
		my $libpq = sub { my ($user, @arguments) = @_;
			return printed($client, "$connection dbname=postgres user=$user", @arguments) };
		for my $way (qw(simple extended binary prepared single binary-single chunks pipeline copy))
		{
			same("libpq by $kind, $way", sub { $libpq->($_[0], $way, $way eq 'pipeline' ? $plain : $query) });
		}
		same("libpq by $kind, cancel after $_ rows", sub { $libpq->($_[0], 'cancel', $large, $_) }) for 1, 20000;
		like(($libpq->('formed', 'cancel', $large, 5000))[1], qr/57014/, 'it is cancelled');
		for my $rows (1, 20000)
		{
			(undef, my $printed) = $libpq->('formed', 'leave', $large, $rows);
			ok(nothing_left(), "libpq by $kind, the client leaves after $rows rows: nothing is left");
		}
	}
}

# one that does not read for a while
SKIP:
{
	skip "libpq: $why_not", 4 unless $compiled;
	my $printed = (printed($client, "$connections{TCP} dbname=postgres user=native", 'stop', $large, 1))[1];
	for my $kind ('a UNIX socket', grep { defined $connections{$_} } 'TLS', 'GSS')
	{
		my ($in, $out) = ('', '');
		my $run = IPC::Run::start([ $client, "$connections{$kind} dbname=postgres user=formed", 'stop', $large, 1 ],
			'<', \$in, '>', \$out, IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
		$run->pump until $out =~ /stopped/;
		ok(wait_until(sub { $node->ask(
			q{SELECT count(*) FROM pg_stat_activity WHERE usename = 'formed' AND wait_event = 'ClientWrite'}) > 0 }),
			"by $kind: the server waits for a client that does not read");
		$run->finish;
		ok($out eq $printed, 'which gets all of its rows later');
	}
	ok(nothing_left(), 'nothing is left');
}

# --- pg_dump --------------------------------------------------------------------------------------

for my $options ([], ['--inserts'], [ '-Fc', '-Z0' ])
{
	same("pg_dump @$options", sub {
		my ($status, $dump) = printed('pg_dump', @$options, '-d', "$connections{TCP} dbname=postgres user=$_[0]");
		# a custom dump begins with its time
		return ($status, @$options && $options->[0] eq '-Fc' ? md5_hex(substr $dump, 4000)
			: $dump =~ s/^\\(?:un)?restrict .*\n//gmr);
	});
}

# --- drivers --------------------------------------------------------------------------------------

my %drivers = (
	psycopg2 => q{
import hashlib, psycopg2, sys
def show(way, rows):
    rows = [tuple(bytes(v) if isinstance(v, memoryview) else v for v in row) for row in rows]
    print(way, len(rows), hashlib.md5(repr(rows).encode()).hexdigest())
c = psycopg2.connect(sys.argv[1])
for query in sys.argv[2:]:
    for size in 777, 100000:
        cur = c.cursor('of %d rows' % size); cur.itersize = size
        cur.execute(query)
        show('cursor', [row for row in cur])
    cur = c.cursor(); cur.execute(query)
    show('all', cur.fetchall())
    with open('/dev/stdout', 'w') as out:
        cur.copy_expert('COPY (' + query + ') TO STDOUT', out)
},
	psycopg => q{
import hashlib, psycopg, sys
def show(way, rows):
    print(way, len(rows), hashlib.md5(repr(rows).encode()).hexdigest())
with psycopg.connect(sys.argv[1]) as c:
    for query in sys.argv[2:]:
        for binary in (False, True):
            with c.cursor('named', binary=binary) as cur:
                cur.itersize = 777
                cur.execute(query)
                show('cursor', [row for row in cur])
            for i in range(2):
                show('prepared', c.execute(query, prepare=True, binary=binary).fetchall())
            with c.cursor(binary=binary) as cur:
                show('stream', [row for row in cur.stream(query)])
            with c.cursor().copy('COPY (' + query + ') TO STDOUT' + (' (FORMAT binary)' if binary else '')) as copy:
                show('copy', [bytes(data) for data in copy])
        with c.pipeline():
            cursors = [c.execute(query) for i in range(2)]
            for cur in cursors:
                show('pipeline', cur.fetchall())
});
# what the drivers understand
my $columns = 'id, v, n, b, by, tz, ta, j, nothing, empty';
my @driver_queries = map { $_ =~ s/\*/$columns/r } $query, $plain;
for my $driver (sort keys %drivers)
{
	my ($there) = printed('/usr/bin/python3', '-c', "import $driver");
	for my $kind (sort keys %connections)
	{
		SKIP:
		{
			skip "$driver is not installed", 1 unless $there;
			skip "$kind is not to be had", 1 unless defined $connections{$kind};
			my @script = ('/usr/bin/python3', '-c', $drivers{$driver});
			my $one = $driver_queries[ $kind eq 'TLS' ? 1 : 0 ];
			cmp_ok(same("$driver by $kind",
				sub { printed(@script, "$connections{$kind} dbname=postgres user=$_[0]", $one) }), '>', 0, 'formed');
		}
	}
}

my $jar = '/usr/share/java/postgresql.jar';
for my $kind ('TCP', 'TLS')
{
	SKIP:
	{
		skip 'JDBC: no java, javac or PostgreSQL driver is installed', 1
			unless -e $jar && is_there('java') && is_there('javac');
		skip "$kind is not to be had", 1 unless defined $connections{$kind};
		my $mode = $kind eq 'TLS' ? 'require' : 'disable';
		my $url = "jdbc:postgresql://127.0.0.1:$port/postgres?gssEncMode=disable&sslmode=$mode";
		cmp_ok(same("JDBC by $kind", sub { printed('java', '-XX:TieredStopAtLevel=1', '-cp', $jar,
			"$library/JdbcClient.java", "$url&user=$_[0]", $query) }), '>', 0, 'formed');
	}
}

# --- pgbouncer ------------------------------------------------------------------------------------

for my $pool ('session', 'transaction', 'statement')
{
	SKIP:
	{
		skip 'pgbouncer is not installed', 1 unless is_there('pgbouncer');
		my $directory = "$scratch/$pool";
		mkdir $directory or die "$directory: $!";
		my $ini = file("$pool.ini", join '', "[databases]\n",
			(map { "$_ = host=@{[ $node->host ]} port=$port dbname=postgres user=$_\n" } 'native', 'formed'),
			"[pgbouncer]\nlisten_addr =\nlisten_port = $port\nunix_socket_dir = $directory\nauth_type = any\n",
			"pool_mode = $pool\n");
		local $ENV{PATH} = "$ENV{PATH}:/usr/sbin";
		my $bouncer = IPC::Run::start([ 'pgbouncer', '-q', $ini ], '<', \undef, '>&', "$directory/log");
		ok(wait_until(sub { -S "$directory/.s.PGSQL.$port" }), "pgbouncer, $pool: it runs");
		my $connection = "host=$directory port=$port user=any";
		cmp_ok(same("psql through pgbouncer, $pool",
			sub { printed('psql', '-XqAt', '-d', "$connection dbname=$_[0]", '-c', $query, '-c', $plain) }), '>', 0,
			'formed');
		skip "libpq: $why_not", 1 unless $compiled;
		# names of prepared statements are a session's
		for my $way (qw(simple extended binary single pipeline copy), $pool eq 'session' ? 'prepared' : ())
		{
			same("libpq through pgbouncer, $pool, $way",
				sub { printed($client, "$connection dbname=$_[0]", $way, $query) });
		}
		(undef, my $printed) = printed($client, "$connection dbname=formed", 'leave', $large, 20000);
		ok(wait_until(sub { $node->ask(
			q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'parallel worker'}) == 0 }),
			'a client that leaves: nothing is left');
		$bouncer->kill_kill;
	}
}

unlike($node->log_text, qr/PANIC|TRAP|XX000|leak|still referenced/, 'the server lived through it all');
$center->kill_kill if defined $center;
$node->stop;

done_testing;
