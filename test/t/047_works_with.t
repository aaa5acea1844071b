# What doc/works-with.md claims: beside each of these extensions, loaded before gpusort and after it, sorts are
# gpusort's, answers are PostgreSQL's, and the extension does its work on plans with GpuSort.  Those that are
# not installed are skipped.
use strict;
use warnings;

use File::Basename qw(dirname);
use GpuSortNode;
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
		q{SELECT calls > 0 AND rows > 0 AND mean_exec_time > 0 FROM pg_stat_statements WHERE query ~ '^SELECT id, k, m FROM t'}) eq 't' },
	auto_explain => sub { $node->log_text =~ /LOG:.*duration: .*plan:.*Custom Scan \(GpuSort\)/s },
	pg_qualstats => sub { $node->safe_psql('postgres',
	q{SELECT count(*) > 0 FROM pg_qualstats WHERE lrelid = 't'::regclass}) eq 't' },
	pg_stat_kcache => sub { $node->safe_psql('postgres',
	q{SELECT count(*) > 0 FROM pg_stat_kcache() k JOIN pg_stat_statements s USING (queryid) WHERE query ~ '^SELECT id, k, m FROM t'}) eq 't' },
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
	$node->safe_psql('postgres', q{CREATE TABLE t AS SELECT i AS id, (i * 7919::bigint) % 30011 AS k, md5(i::text) AS m FROM generate_series(1, 60000) i; ANALYZE t});
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
	citext => [ q{CREATE TABLE of_citext AS SELECT i AS id, (md5((i % 5000)::text))::citext AS c FROM generate_series(1, 20000) i}, 'SELECT * FROM of_citext ORDER BY c, id', 0, 'SELECT * FROM of_citext ORDER BY lower(c::text) COLLATE "C", id', 1 ],
	ltree => [ q{CREATE TABLE of_ltree AS SELECT i AS id, text2ltree('a.b' || i % 700 || '.c' || i % 13) AS c FROM generate_series(1, 20000) i}, 'SELECT * FROM of_ltree ORDER BY c, id', 0, 'SELECT * FROM of_ltree ORDER BY nlevel(c), id', 1 ],
	hstore => [ q{CREATE TABLE of_hstore AS SELECT i AS id, hstore('a', (i % 700)::text) AS c FROM generate_series(1, 20000) i}, 'SELECT * FROM of_hstore ORDER BY c, id', 0, q{SELECT * FROM of_hstore ORDER BY (c -> 'a') COLLATE "C", id}, 1 ],
	pg_trgm => [ q{CREATE TABLE of_trgm AS SELECT i AS id, md5(i::text) AS c FROM generate_series(1, 20000) i},
	q{SELECT * FROM of_trgm ORDER BY similarity(c, 'abc'), id}, 1 ],
	postgis => [ q{CREATE TABLE of_postgis AS SELECT i AS id, ST_MakePoint(i % 700, i % 13) AS c FROM generate_series(1, 20000) i}, 'SELECT * FROM of_postgis ORDER BY c, id', 0, 'SELECT * FROM of_postgis ORDER BY ST_X(c), ST_Y(c), id', 1 ],
	vector => [ q{CREATE TABLE of_vector AS SELECT i AS id, ARRAY[i % 700, i % 13]::vector AS c FROM generate_series(1, 20000) i}, 'SELECT * FROM of_vector ORDER BY c, id', 0, q{SELECT * FROM of_vector ORDER BY c <-> '[1,2]', id}, 1 ],
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
		my (undef, undef, $log) = $node->psql('postgres', 'SET gpusort.log_decisions = on; SET client_min_messages = log; EXPLAIN SELECT * FROM of_citext ORDER BY c');
		like($log, qr/sort key 1 is of type citext, .*lower\(x::text\)/, 'citext: the log says what would be sorted');
	}
}

SKIP:
{
	skip 'hypopg is not installed', 3 unless $installed->('hypopg');
	# auto_explain, which sees the plan too, does not know such an index, with gpusort or without
	my $hypothetical = $node->safe_psql('postgres',
		q{CREATE EXTENSION hypopg; SELECT count(*) FROM hypopg_create_index('CREATE INDEX ON t (k, m DESC)'); SET enable_seqscan = off; SET auto_explain.log_min_duration = -1; EXPLAIN (COSTS OFF) SELECT k, m FROM t ORDER BY k, m DESC LIMIT 5});
	like($hypothetical, qr/Index (?:Only )?Scan using .*btree_t_k_m/,
		'hypopg: a hypothetical index in the place of a sort');
	sorts('hypopg', $query, 1);
}

SKIP:
{
	skip 'postgres_fdw is not installed', 3 unless $installed->('postgres_fdw');
	my ($host, $port, $user) = ($node->host, $node->port, $node->safe_psql('postgres', 'SELECT current_user'));
	$node->safe_psql('postgres', qq{CREATE EXTENSION postgres_fdw; CREATE SERVER loopback FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$host', port '$port', dbname 'postgres');
		CREATE USER MAPPING FOR CURRENT_USER SERVER loopback OPTIONS (user '$user'); CREATE FOREIGN TABLE remote (id int, k bigint, m text) SERVER loopback OPTIONS (table_name 't'); ANALYZE remote});
	sorts('postgres_fdw, rows sorted here', 'SELECT id, k FROM remote ORDER BY md5(m || id::text) COLLATE "C"', 1);
	my $answer = sprintf $digest, 'SELECT id, k FROM remote ORDER BY k, id';
	is($node->safe_psql('postgres', "SET gpusort.force = on; $answer"),
		$node->safe_psql('postgres', "SET gpusort.enable = off; $answer"), 'postgres_fdw, rows sorted there: the answer');
}
$node->stop;

# The page has what is tried here.
my $page = slurp_file(dirname(__FILE__) . '/../../doc/works-with.md');
is(join(' ', grep { $page !~ /^\| (?:PostGIS \(|pgvector \()?`?\Q$_\E\b/m } sort 'hypopg', 'postgres_fdw',
	keys %preloaded, keys %types), '', 'doc/works-with.md names each');

done_testing;
