# gpusort_advise(): which statements of pg_stat_statements gpusort would change, planned and never run,
# with the rights of who asks; what cannot be planned does not keep others from it.
use strict;
use warnings;

use GpuSortNode;
use Test::More;

my $node = GpuSortNode->new('main');
$node->init(conf => [ q{shared_preload_libraries = 'gpusort'}, 'gpusort.min_rows = 2000', 'work_mem = 4MB',
	'max_parallel_workers_per_gather = 0' ]);
$node->start;
$node->wait_service;
$node->safe_psql('postgres', 'CREATE EXTENSION gpusort');

sub complaint
{
	my ($sql, @params) = @_;
	my (undef, undef, $err) = $node->psql('postgres', $sql, @params);
	return $err;
}

# what it needs
my $ask = 'SELECT count(*) FROM gpusort_advise()';
my $preloaded = 'shared_preload_libraries, and restart the server';
like(complaint($ask),
	qr/ERROR:.*gpusort_advise\(\) needs the library pg_stat_statements\n.*HINT:.*Add pg_stat_statements to $preloaded\./s,
	'without the library');
$node->append_conf('postgresql.conf', q{shared_preload_libraries = 'pg_stat_statements,gpusort'});
$node->restart;
$node->wait_service;
like(complaint($ask),
	qr/ERROR:.*gpusort_advise\(\) needs the extension pg_stat_statements\n.*HINT:.*CREATE EXTENSION pg_stat_statements\./s,
	'without the extension');
is($node->safe_psql('postgres', "CREATE SCHEMA \"Statistics\"; "
	. "CREATE EXTENSION pg_stat_statements SCHEMA \"Statistics\"; $ask"), '0', 'with both; nothing has been run yet');

# what is run
$node->safe_psql('postgres', q{
	CREATE TABLE t AS SELECT i AS id, (i * 7919::bigint) % 300007 AS k, md5(i::text) AS m
		FROM generate_series(1, 200000) i;
	CREATE TABLE documents AS SELECT i AS id, i::text::oidvector AS j FROM generate_series(1, 20000) i;
	CREATE TABLE gone (i int);
	CREATE TABLE kept (i int);
	CREATE SEQUENCE counter;
	CREATE ROLE alice LOGIN;
	GRANT USAGE ON SCHEMA "Statistics" TO alice;
	ANALYZE;
	SELECT "Statistics".pg_stat_statements_reset();
});
my %queries = (
	sorted => 'SELECT count(*) FROM (SELECT * FROM t ORDER BY k OFFSET 0) sorted',
	with_parameters => 'SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY k ORDER BY m) AS n FROM t '
	. 'WHERE id > 10) with_parameters WHERE n = 7',
	no_sort => 'SELECT count(*) FROM t no_sort',
	no_encoding => 'SELECT count(*) FROM (SELECT * FROM documents ORDER BY j OFFSET 0) no_encoding',
	of_gone => 'SELECT * FROM gone of_gone ORDER BY i',
	volatile => q{SELECT nextval('counter'), * FROM kept volatile ORDER BY i},
	'for_update' => 'SELECT * FROM kept for_update FOR UPDATE',
	'deletes' => 'DELETE FROM kept deletes',
	'cte_deletes' => 'WITH cte_deletes AS (DELETE FROM kept RETURNING i) SELECT * FROM cte_deletes ORDER BY i',
	'no_table' => 'SELECT 1 AS no_table ORDER BY 1',
	# with $1 in the place of constants these are no statements
	typed => q{SELECT count(*) FROM (SELECT * FROM t WHERE date '2000-01-01' + id * interval '1' day > }
	. q{timestamp '2001-01-01' AND now() > timestamp with time zone '2001-01-01' ORDER BY k OFFSET 0) typed},
	extracted => q{SELECT count(*) FROM (SELECT extract(month FROM date '2000-01-01' + id) FROM t ORDER BY k OFFSET 0) }
	. q{extracted},
	added => q{SELECT count(*) FROM (SELECT * FROM t WHERE id IN (7, 7 + 1, - 3) OR k < 3 }
	. q{OR date '2000-01-01' - 7 > date '2001-01-01' + 7 OR current_date - 7 > date '2000-01-01' }
	. q{ORDER BY k OFFSET 0) added},
	summed => q{SELECT m, sum(CASE WHEN k > 7 THEN 1 ELSE 0 END) AS summed FROM t GROUP BY m ORDER BY m},
	grouped => q{SELECT substr(m, 1, 20) AS grouped, avg(id) FROM t GROUP BY substr(m, 1, 20) ORDER BY substr(m, 1, 20)},
);
$node->safe_psql('postgres', $queries{$_}) for sort keys %queries;
$node->safe_psql('postgres', 'DROP TABLE gone');
my $counter = 'SELECT last_value, is_called FROM counter';
my $before = $node->safe_psql('postgres', $counter);

my $advice = sub {
	my ($name, @params) = @_;
	return $node->safe_psql('postgres',
		"SELECT changes, nodes, ratio > 1, reason FROM gpusort_advise(100) WHERE query ~ '\\m$name\\M'", @params);
};
is($advice->('sorted'), 't|GpuSort|t|', 'a sort that gpusort takes: its nodes, and that it is faster by the model');
is($advice->('with_parameters'), 't|GpuSort|t|', 'one with parameters');
is($advice->('no_sort'), 'f|||its plan has no sort', 'a statement without a sort');
like($advice->('no_encoding'), qr/^f\|\|\|sort key 1 is of type oidvector/, 'a sort that stays PostgreSQL\'s, and why');
is($node->safe_psql('postgres', q{SELECT count(*), string_agg(reason, '; ') FROM gpusort_advise(100) }
	. q{WHERE query ~ '\$1' AND query ~ '\m(typed|extracted|added|summed|grouped)\M' AND reason LIKE 'cannot%'}), '0|',
	'constants where no parameter can stand are no error')
	or diag $node->safe_psql('postgres', 'SELECT query, reason FROM gpusort_advise(100)');
is($node->safe_psql('postgres', q{SELECT string_agg(name, ' ' ORDER BY name COLLATE "C") FROM gpusort_advise(100), }
	. q{substring(query, '\m(?:typed|extracted|added|summed|grouped)\M') name WHERE changes AND query ~ '\$1'}),
	'added extracted grouped summed typed', 'and their plans change');
is($advice->('of_gone'), 'f|||cannot be planned: relation "gone" does not exist',
	'one that cannot be planned any more');
like($advice->('volatile'), qr/^f\|\|\|.* (?:row is|rows are) fewer than gpusort\.min_rows$/,
	'one of few rows, whose functions are not called');
is($advice->($_), '', "$_ is none that only reads tables") for qw(for_update deletes cte_deletes no_table);
is($node->safe_psql('postgres', $counter), $before, 'nothing was run');
is($node->safe_psql('postgres',
	q{SELECT bool_and(calls = 1 AND total_exec_time > 0 AND temp_blks >= 0 AND queryid <> 0) FROM gpusort_advise(100) }
	. q{WHERE query ~ 'sort'}), 't', 'what pg_stat_statements has of them');
is($node->safe_psql('postgres',
	q{SELECT temp_blks > 0 FROM gpusort_advise(100) WHERE query ~ 'no_encoding' OR query ~ 'sorted' LIMIT 1}), 'f',
	'gpusort has written no temporary blocks');
$node->safe_psql('postgres', q{SELECT "Statistics".pg_stat_statements_reset(); SET gpusort.enable = off; }
	. q{SET work_mem = '1MB'; } . $queries{sorted});
is($node->safe_psql('postgres', q{SELECT temp_blks > 0, changes FROM gpusort_advise(1)}), 't|t', 'PostgreSQL has');

# what tells of statements, and psql's own, are none that anybody would have faster
$node->safe_psql('postgres', q{SELECT "Statistics".pg_stat_statements_reset()});
$node->safe_psql('postgres', "SELECT pid AS own FROM gpusort_jobs ORDER BY 1;\n"
	. "SELECT queryid AS own FROM \"Statistics\".pg_stat_statements ORDER BY 1;\n"
	. "SELECT 1 AS own FROM t ORDER BY k \\gdesc\n"
	. 'SELECT k AS users_own FROM t ORDER BY k LIMIT 1');
is($node->safe_psql('postgres', q{SELECT count(*), bool_and(query ~ 'users_own') FROM gpusort_advise(100)}), '1|t',
	'statements of psql and of extensions that tell of statements are left out');

# ratios are those of the times beside them, and of the same statement without its LIMIT much alike
$node->safe_psql('postgres', q{SELECT "Statistics".pg_stat_statements_reset()});
$node->safe_psql('postgres', q{SELECT m, count(DISTINCT k) AS limited FROM t GROUP BY m ORDER BY 2 DESC, 1 LIMIT 20});
$node->safe_psql('postgres', q{SELECT count(*) FROM (SELECT m, count(DISTINCT k) AS unlimited FROM t GROUP BY m }
	. q{ORDER BY 2 DESC, 1 OFFSET 0) s});
my ($of_limit, $of_all) = map { $node->safe_psql('postgres',
	'SELECT CASE WHEN abs(ratio - native_estimate / gpusort_estimate) < 0.001 THEN ratio END '
	. "FROM gpusort_advise(100) WHERE query ~ '$_'") }
	'\mlimited', 'unlimited';
cmp_ok($of_limit, '>', 1, 'a sort below LIMIT has a ratio');
cmp_ok($of_limit, '<', 2 * $of_all, 'that is no more than twice as high as without it');
cmp_ok($of_limit, '>', $of_all / 2, 'nor less than half');
$node->safe_psql('postgres', q{SELECT "Statistics".pg_stat_statements_reset()});

# what it takes: the longest first, so many of them
$node->safe_psql('postgres', q{SELECT count(*) FROM t short WHERE id = 1; SELECT pg_sleep(1), count(*) FROM t long }
	. q{WHERE id = 1; SELECT count(*) FROM documents WHERE id = 1});
is($node->safe_psql('postgres', 'SELECT query ~ \'long\' FROM gpusort_advise(1)'), 't',
	'the one that took longest is first');
is($node->safe_psql('postgres', 'SELECT count(*) FROM gpusort_advise(2)'), '2', 'so many as are wanted');
is($node->safe_psql('postgres', 'SELECT count(*) FROM gpusort_advise(0)'), '0', 'none if none is');
is($node->safe_psql('postgres', 'SELECT (array_agg(total_exec_time))[1:4] = (SELECT array_agg(t ORDER BY t DESC) '
	. 'FROM (SELECT total_exec_time AS t FROM gpusort_advise(4)) s) FROM gpusort_advise(4)'), 't', 'in this order');

# what the session has set comes back, after errors too
$node->safe_psql('postgres', q{SELECT m, count(DISTINCT k) FROM t GROUP BY m ORDER BY 2 DESC, 1 LIMIT 20});
is($node->safe_psql('postgres', "SELECT count(*) > 0 FROM gpusort_advise(); SHOW gpusort.enable; SHOW search_path"),
	"t\non\n\"\$user\", public", 'settings are as they were');
is($node->safe_psql('postgres', "SET gpusort.enable = off; SELECT bool_or(changes) FROM gpusort_advise(); "
	. "SHOW gpusort.enable"), "t\noff", 'whatever they were');
is($node->safe_psql('postgres', "SET gpusort.allowed = off; SELECT bool_or(changes) FROM gpusort_advise()"), 'f',
	'where gpusort is not allowed it changes nothing');

# rights: who may not see statements is shown none, who may not read tables no plans
my @alice = (extra_params => [qw(-U alice)]);
is($node->safe_psql('postgres', $ask, @alice), '0', 'a user without rights sees no statements of others');
$node->safe_psql('postgres', 'GRANT pg_read_all_stats TO alice');
is($advice->('short', @alice), 'f|||cannot be planned: permission denied for table t',
	'one who may see them has no plans of tables that are not his');
$node->safe_psql('postgres', 'GRANT SELECT ON t TO alice');
is($advice->('short', @alice), 'f|||its plan has no sort', 'until he may read them');
like(complaint($ask, extra_params => [ '-U', 'alice', '-c', 'SET statement_timeout = 1', '-c', "$ask, pg_sleep(1)" ]),
	qr/statement timeout/, 'a timeout ends it');
$node->stop;

done_testing;
