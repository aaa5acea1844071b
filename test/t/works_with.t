# What doc/works-with.md claims: beside each of these extensions, loaded before gpusort and after it, sorts are
# gpusort's, answers are PostgreSQL's, and the extension does its work on plans with GpuSort.  Those that are
# not installed are skipped.
use strict;
use warnings;

use File::Basename qw(dirname);
use File::Temp ();
use GpuSortNode;
use IPC::Run ();
use PostgreSQL::Test::Utils qw(slurp_file);
use Test::More;

chomp(my $share = `@{[ $ENV{PG_CONFIG} || 'pg_config' ]} --sharedir`);
chomp(my $lib = `@{[ $ENV{PG_CONFIG} || 'pg_config' ]} --pkglibdir`);
my $installed = sub { my ($name) = @_; return -e "$share/extension/$name.control" };

# Those that the server preloads, with what they need.
my %preloaded = (
	pg_stat_statements => [],
	auto_explain => [ 'auto_explain.log_min_duration = 0', 'auto_explain.log_analyze = on' ],
	pg_qualstats => [ 'pg_qualstats.sample_rate = 1' ],
	pg_stat_kcache => [],
	pgaudit => [ q{pgaudit.log = 'read'} ],
	pg_cron => [ q{cron.database_name = 'postgres'} ],
	pg_hint_plan => [],
);
my %order = (pg_stat_statements => 0, pg_stat_kcache => 1);	# the second wants the first before it
my @libraries = sort { ($order{$a} // 2) <=> ($order{$b} // 2) || $a cmp $b } grep { -e "$lib/$_.so"
	&& ($_ eq 'auto_explain' || $installed->($_)) } keys %preloaded;
my %here = map { $_ => 1 } @libraries;

my $query = 'SELECT id, k, m FROM t WHERE id > 10 ORDER BY k, m DESC';
my $digest = 'SELECT md5(string_agg(q::text, \',\')) FROM (%s) q';
my ($node, $native);

# Asks of a query whether it is sorted by gpusort, and whether the answer is PostgreSQL's.
sub sorts
{
	my ($name, $sql, $by_gpusort) = @_;
	my $plan = $node->safe_psql('postgres', "SET gpusort.force = on; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $sql");

	like($plan, $by_gpusort ? qr/Custom Scan \(GpuSort\).*cpu radix|Custom Scan \(GpuSort\).*gpu radix/s
		: qr/^(?!.*GpuSort)/s, "$name: " . ($by_gpusort ? 'gpusort sorts' : 'PostgreSQL sorts'));
	my $answer = sprintf $digest, $sql;
	is($node->safe_psql('postgres', "SET gpusort.force = on; $answer"),
		$node->safe_psql('postgres', "SET gpusort.enable = off; $answer"), "$name: the answer");
	return;
}

# What a preloaded one has to say of sorts of gpusort's.
my %does = (
	pg_stat_statements => sub { $node->safe_psql('postgres',
		q{SELECT calls > 0 AND rows > 0 AND mean_exec_time > 0 FROM pg_stat_statements }
			. q{WHERE query ~ '^SELECT id, k, m FROM t'}) eq 't' },
	auto_explain => sub { $node->log_text =~ /LOG:.*duration: .*plan:.*Custom Scan \(GpuSort\)/s },
	pg_qualstats => sub { $node->safe_psql('postgres',
	q{SELECT count(*) > 0 FROM pg_qualstats WHERE lrelid = 't'::regclass}) eq 't' },
	pg_stat_kcache => sub { $node->safe_psql('postgres',
	q{SELECT count(*) > 0 FROM pg_stat_kcache() k JOIN pg_stat_statements s USING (queryid) }
		. q{WHERE query ~ '^SELECT id, k, m FROM t'}) eq 't' },
	pgaudit => sub { $node->log_text =~ /LOG:.*AUDIT: SESSION,.*READ,SELECT,.*SELECT id, k, m FROM t/ },
	pg_cron => sub { $node->safe_psql('postgres', qq{SELECT cron.schedule('sort', '0 0 1 1 *', '$query') > 0}) eq 't' },
	pg_hint_plan => sub { $node->safe_psql('postgres', '/*+ Set(gpusort.enable off) */ EXPLAIN (COSTS OFF) '
	. $query) !~ /GpuSort/ },
);

for my $gpusort_last (0, 1)
{
	my @list = $gpusort_last ? (@libraries, 'gpusort') : ('gpusort', @libraries);
	my $where = $gpusort_last ? 'before gpusort' : 'after gpusort';

	$node = GpuSortNode->new("preloaded$gpusort_last");
	$node->init(conf => [ 'compute_query_id = on', map { @{ $preloaded{$_} } } @libraries ]);
	$node->append_conf('postgresql.conf', "shared_preload_libraries = '" . join(',', @list) . "'");
	$node->start;
	$node->wait_service;
	$node->safe_psql('postgres', join ';', 'CREATE EXTENSION gpusort',
		map { "CREATE EXTENSION IF NOT EXISTS $_ CASCADE" } grep { $_ ne 'auto_explain' } @libraries);
	$node->safe_psql('postgres', q{CREATE TABLE t AS SELECT i AS id, (i * 7919::bigint) % 30011 AS k, md5(i::text) AS m }
		. q{FROM generate_series(1, 60000) i; ANALYZE t});
	sorts("all, $where", $query, 1);
	sorts("all, $where, parallel", "$query LIMIT 50000", 1);
	$node->safe_psql('postgres', "SET gpusort.force = on; $query");
	for my $name (sort keys %preloaded)
	{
		SKIP:
		{
			skip "$name is not installed", 1 unless $here{$name};
			ok($does{$name}->(), "$name, $where: does its work");
		}
	}
	my $severity = $node->safe_psql('postgres', q{SELECT severity FROM gpusort_check() WHERE subject = 'hooks'});
	is($severity, $here{pg_hint_plan} ? 'notice' : 'ok', "gpusort_check() knows those that were tried, $where");
	$node->stop if !$gpusort_last;
}

# Those that a database has; of types of their own PostgreSQL sorts, unless an expression has another.
my %types = (
	citext => [ q{CREATE TABLE of_citext AS SELECT i AS id, (md5((i % 5000)::text))::citext AS c }
		. q{FROM generate_series(1, 20000) i}, 'SELECT * FROM of_citext ORDER BY c, id', 0,
		'SELECT * FROM of_citext ORDER BY lower(c::text) COLLATE "C", id', 1 ],
	ltree => [ q{CREATE TABLE of_ltree AS SELECT i AS id, text2ltree('a.b' || i % 700 || '.c' || i % 13) AS c }
		. q{FROM generate_series(1, 20000) i}, 'SELECT * FROM of_ltree ORDER BY c, id', 0,
		'SELECT * FROM of_ltree ORDER BY nlevel(c), id', 1 ],
	hstore => [ q{CREATE TABLE of_hstore AS SELECT i AS id, hstore('a', (i % 700)::text) AS c }
		. q{FROM generate_series(1, 20000) i}, 'SELECT * FROM of_hstore ORDER BY c, id', 0,
		q{SELECT * FROM of_hstore ORDER BY (c -> 'a') COLLATE "C", id}, 1 ],
	pg_trgm => [ q{CREATE TABLE of_trgm AS SELECT i AS id, md5(i::text) AS c FROM generate_series(1, 20000) i},
	q{SELECT * FROM of_trgm ORDER BY similarity(c, 'abc'), id}, 1 ],
	postgis => [ q{CREATE TABLE of_postgis AS SELECT i AS id, ST_MakePoint(i % 700, i % 13) AS c }
		. q{FROM generate_series(1, 20000) i}, 'SELECT * FROM of_postgis ORDER BY c, id', 1,
		'SELECT * FROM of_postgis ORDER BY ST_X(c), ST_Y(c), id', 1 ],
	vector => [ q{CREATE TABLE of_vector AS SELECT i AS id, ARRAY[i % 700, i % 13]::vector AS c }
		. q{FROM generate_series(1, 20000) i}, 'SELECT * FROM of_vector ORDER BY c, id', 0,
		q{SELECT * FROM of_vector ORDER BY c <-> '[1,2]', id}, 1 ],
);
for my $name (sort keys %types)
{
	my ($table, @queries) = @{ $types{$name} };
	SKIP:
	{
		skip "$name is not installed", @queries + ($name eq 'citext') unless $installed->($name);
		$node->safe_psql('postgres', "CREATE EXTENSION $name; $table; ANALYZE");
		while (my ($sql, $by_gpusort) = splice @queries, 0, 2)
		{
			sorts("$name, " . ($sql =~ /ORDER BY (.*)/)[0], $sql, $by_gpusort);
		}
		next if $name ne 'citext';
		my (undef, undef, $log) = $node->psql('postgres',
			'SET gpusort.log_decisions = on; SET client_min_messages = log; EXPLAIN SELECT * FROM of_citext ORDER BY c');
		like($log, qr/sort key 1 is of type citext, .*lower\(x::text\)/, 'citext: the log says what would be sorted');
	}
}

SKIP:
{
	skip 'hypopg is not installed', 3 unless $installed->('hypopg');
	# auto_explain, which sees the plan too, does not know such an index, with gpusort or without
	my $hypothetical = $node->safe_psql('postgres',
		q{CREATE EXTENSION hypopg; SELECT count(*) FROM hypopg_create_index('CREATE INDEX ON t (k, m DESC)'); }
			. q{SET enable_seqscan = off; SET auto_explain.log_min_duration = -1; EXPLAIN (COSTS OFF) SELECT k, m FROM t }
			. q{ORDER BY k, m DESC LIMIT 5});
	like($hypothetical, qr/Index (?:Only )?Scan using .*btree_t_k_m/,
		'hypopg: a hypothetical index in the place of a sort');
	sorts('hypopg', $query, 1);
}

SKIP:
{
	skip 'pg_plan_advice is not installed', 3 unless -e "$lib/pg_plan_advice.so";
	my $join = 'SELECT a.id, b.k FROM t a JOIN t b ON a.k = b.k ORDER BY a.m, b.m, a.id, b.id';

	for my $method ('Hash Join', 'Nested Loop')
	{
		my $advice = $method eq 'Hash Join' ? 'HASH_JOIN(b)' : 'NESTED_LOOP_MATERIALIZE(b)';
		my $advised = "LOAD 'pg_plan_advice'; SET max_parallel_workers_per_gather = 0; "
			. "SET pg_plan_advice.advice = '$advice'; SET gpusort.force = on;";
		my $plan = $node->safe_psql('postgres', "$advised EXPLAIN (COSTS OFF, PLAN_ADVICE) $join");

		like($plan, qr{^Custom Scan \(GpuSort\).*-> +$method.*\Q$advice\E /\* matched \*/}s,
			"pg_plan_advice: $advice below a sort of gpusort's");
		next if $method ne 'Hash Join';
		is($node->safe_psql('postgres', "$advised " . sprintf $digest, $join),
			$node->safe_psql('postgres', 'SET gpusort.enable = off; ' . sprintf $digest, $join),
			'pg_plan_advice: the answer');
	}
}

my ($host, $port, $user) = ($node->host, $node->port, $node->safe_psql('postgres', 'SELECT current_user'));
SKIP:
{
	skip 'postgres_fdw is not installed', 8 unless $installed->('postgres_fdw');
	$node->safe_psql('postgres', qq{CREATE EXTENSION postgres_fdw;
		CREATE SERVER loopback FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$host', port '$port', dbname 'postgres');
		CREATE USER MAPPING FOR CURRENT_USER SERVER loopback OPTIONS (user '$user');
		CREATE FOREIGN TABLE remote (id int, k bigint, m text) SERVER loopback OPTIONS (table_name 't'); ANALYZE remote});
	sorts('postgres_fdw, rows sorted here', 'SELECT id, k FROM remote ORDER BY md5(m || id::text) COLLATE "C"', 1);
	my $answer = sprintf $digest, 'SELECT id, k FROM remote ORDER BY k, id';
	is($node->safe_psql('postgres', "SET gpusort.force = on; $answer"),
		$node->safe_psql('postgres', "SET gpusort.enable = off; $answer"), 'postgres_fdw, rows sorted there: the answer');
	# Of these the server there does the LIMIT, too.
	for my $all ('SELECT id, k FROM remote ORDER BY k, id LIMIT 3', 'SELECT id, k FROM remote ORDER BY k, id OFFSET 7',
		'SELECT id, k FROM remote ORDER BY k, id LIMIT 5 OFFSET (SELECT count(*) - 9 FROM t)',
		'SELECT id, k FROM remote ORDER BY k, id LIMIT 4 FOR UPDATE',
		'SELECT l.id, r.k FROM t l JOIN (SELECT id, k FROM remote ORDER BY k, id LIMIT 3 OFFSET 2) r USING (id) ORDER BY id')
	{
		is($node->safe_psql('postgres', "SET gpusort.force = on; SET gpusort.min_rows = 0; $all"),
			$node->safe_psql('postgres', "SET gpusort.enable = off; $all"), "postgres_fdw: $all");
	}
}
# --- other programs ------------------------------------------------------------------------------

my $scratch = File::Temp::tempdir(CLEANUP => 1);

# What a program prints, and its status.
sub printed
{
	my @command = @_;
	my $status = IPC::Run::run(\@command, '<', \undef, '>&', \my $output, IPC::Run::timeout(180));

	return ($status, $output);
}

SKIP:
{
	skip 'pgbouncer is not installed', 3 unless grep { -x "$_/pgbouncer" } split(/:/, $ENV{PATH}), '/usr/sbin';
	open my $ini, '>', "$scratch/ini" or die $!;
	print $ini "[databases]\npostgres = host=$host port=$port user=$user\n[pgbouncer]\nlisten_addr =\n",
		"listen_port = $port\nunix_socket_dir = $scratch\nauth_type = any\npool_mode = transaction\n";
	close $ini or die $!;
	local $ENV{PATH} = "$ENV{PATH}:/usr/sbin";
	my $bouncer = IPC::Run::start([ 'pgbouncer', '-q', "$scratch/ini" ], '<', \undef, '>&', "$scratch/log");
	wait_until(sub { -S "$scratch/.s.PGSQL.$port" });
	my @through = ('psql', '-XqAt', '-h', $scratch, '-p', $port, '-U', $user, '-d', 'postgres');
	my ($status, $plan) = printed(@through, '-c',
		"BEGIN; SET LOCAL gpusort.force = on; EXPLAIN (ANALYZE, COSTS OFF) $query; COMMIT");
	ok($status, 'pgbouncer: a statement through it');
	like($plan, qr/Custom Scan \(GpuSort\).*[cg]pu radix/s, 'pgbouncer: is sorted by gpusort');
	(undef, my $answer) = printed(@through, '-c', 'BEGIN; SET LOCAL gpusort.force = on; ' . sprintf($digest, $query)
		. '; COMMIT');
	is($answer =~ s/\n//gr, $node->safe_psql('postgres', 'SET gpusort.enable = off; ' . sprintf $digest, $query),
		'pgbouncer: the answer');
	$bouncer->kill_kill;
}

# Drivers: rows by a cursor of the server's, by a statement that is prepared, in binary, in a pipeline
my %drivers = (
	psycopg2 => q{
import psycopg2, sys
def rows(setting):
    c = psycopg2.connect(sys.argv[1])
    c.cursor().execute('SET gpusort.' + setting)
    cur = c.cursor('named'); cur.itersize = 777
    cur.execute(sys.argv[2])
    found = [r for r in cur]
    cur = c.cursor(); cur.execute(sys.argv[2])
    return found, cur.fetchall()
a, b = rows('force = on'), rows('enable = off')
print(a == b and a[0] == a[1], len(a[0]))
},
	psycopg => q{
import psycopg, sys
def rows(setting):
    found = []
    with psycopg.connect(sys.argv[1]) as c:
        c.execute('SET gpusort.' + setting)
        for binary in (False, True):
            with c.cursor('named', binary=binary) as cur:
                cur.itersize = 777
                cur.execute(sys.argv[2])
                found.append([r for r in cur])
            for i in range(7):
                found.append(c.execute(sys.argv[2], prepare=True, binary=binary).fetchall())
        with c.pipeline():
            cursors = [c.execute(sys.argv[2]) for i in range(3)]
            found += [cur.fetchall() for cur in cursors]
    return found
a, b = rows('force = on'), rows('enable = off')
print(a == b and all(x == a[0] for x in a), len(a[0]))
});
for my $driver (sort keys %drivers)
{
	SKIP:
	{
		my ($there) = printed('/usr/bin/python3', '-c', "import $driver");
		skip "$driver is not installed", 1 unless $there;
		my (undef, $said) = printed('/usr/bin/python3', '-c', $drivers{$driver},
			"host=$host port=$port user=$user dbname=postgres", $query);
		is($said, "True 59990\n", "$driver: rows are PostgreSQL's");
	}
}

SKIP:
{
	chomp(my $bin = `@{[ $ENV{PG_CONFIG} || 'pg_config' ]} --bindir`);
	skip 'pg_repack is not installed', 3 unless -x "$bin/pg_repack" && $installed->('pg_repack');
	$node->safe_psql('postgres', q{CREATE EXTENSION pg_repack; CREATE TABLE repacked AS SELECT * FROM t; }
		. q{ALTER TABLE repacked ADD PRIMARY KEY (id); ANALYZE repacked; SELECT gpusort_stats_reset()});
	local $ENV{PGOPTIONS} = '-c gpusort.force=on';
	my ($status, $said) = printed("$bin/pg_repack", '-h', $host, '-p', $port, '-U', $user, '-d', 'postgres', '-t',
		'repacked', '-o', 'm');
	ok($status, 'pg_repack: reorders a table') or note $said;
	is($node->safe_psql('postgres',
		q{SELECT count(*) FROM (SELECT m < lag(m) OVER (ORDER BY ctid) AS wrong FROM repacked) q WHERE wrong}),
		'0', 'pg_repack: its rows are in order');
	is($node->safe_psql('postgres', 'SELECT sorts > 0 FROM gpusort_stats'), 't', 'pg_repack: by gpusort');
}
$node->stop;

# The page has what is tried here.
my $page = slurp_file(dirname(__FILE__) . '/../../doc/works-with.md');
is(join(' ', grep { $page !~ /^\| (?:PostGIS \(|pgvector \()?`?\Q$_\E\b/m } sort 'hypopg', 'postgres_fdw',
	'pgbouncer', 'pg_repack', keys %drivers, keys %preloaded, keys %types), '', 'doc/works-with.md names each');

done_testing;
