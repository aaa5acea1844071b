# gpusort.log_decisions: for each sort that stays with PostgreSQL the log says why; and a sort
# whose rows are changed by others meanwhile.
use strict;
use warnings;

use GpuSortNode;
use Test::More;

my $node = GpuSortNode->new('main');
$node->init(conf => ['gpusort.min_rows = 1000']);
$node->start;
$node->wait_service;
$node->safe_psql('postgres', q{
	CREATE TABLE t AS SELECT i AS id, (i * 7919) % 100003 AS k, 't' || i AS s, i::text::oidvector AS j,
		i::text::oidvector AS a FROM generate_series(1, 100000) i;
	CREATE TABLE small AS SELECT * FROM t WHERE id <= 500;
	-- of all rows, for the same plans each time
	SET default_statistics_target = 400;
	ANALYZE;
});

# What the log says when the query is planned with these settings.
sub decision
{
	my ($query, @settings) = @_;
	my $before = length $node->log_text;
	$node->safe_psql('postgres', join '; ', 'SET gpusort.log_decisions = on', @settings, "EXPLAIN $query");
	return join "\n", grep { /gpusort: / } split /\n/, substr($node->log_text, $before);
}

# The first rows of a table are gpusort's, but for rows that come one by one.
my $by_row = 'SET gpusort.page_scan = off';
my @parallel = ('SET max_parallel_workers_per_gather = 2', 'SET parallel_setup_cost = 0', 'SET parallel_tuple_cost = 0',
	'SET min_parallel_table_scan_size = 0');

# The log has one line for each sort that stays, with the reason that decided.
sub refused
{
	my ($query, $reason, $name, @settings) = @_;
	like(decision($query, @settings), qr/\A[^\n]*gpusort: not used: $reason[^\n]*\z/, "$name: one line");
}

refused('SELECT * FROM small ORDER BY k', '500 rows are fewer than gpusort.min_rows', 'too few rows');
refused('SELECT * FROM t ORDER BY j', 'sort key 1 is of type oidvector, which has no key encoding', 'a type',
	'SET gpusort.force = on');
refused('SELECT * FROM t ORDER BY a', 'sort key 1 is of type oidvector, which has no key encoding', 'another type',
	'SET gpusort.force = on');
is(decision('SELECT * FROM t ORDER BY k, a', 'SET gpusort.force = on'), '', 'not the type of a second column');
is(decision('SELECT relname FROM pg_catalog.pg_class ORDER BY relpages'), '', 'nor anything of the catalogs');
refused('SELECT relname FROM pg_catalog.pg_class JOIN small ON id = relpages ORDER BY j',
	'sort key 1 is of type oidvector', 'but of a table beside one of them',
	'SET gpusort.force = on');
refused('SELECT * FROM t ORDER BY k LIMIT 10',
	'the sort alone would take [0-9.]+ ms, PostgreSQL.s [0-9.]+ ms for the rows that LIMIT asks', 'a small LIMIT',
	'SET gpusort.setup_cost = 1e9');
refused('SELECT * FROM t ORDER BY k LIMIT 10',
	'the sort alone would take [0-9.]+ ms, PostgreSQL.s [0-9.]+ ms for the rows that LIMIT asks', 'the same in parallel',
	'SET gpusort.setup_cost = 1e9', @parallel);
is(decision('SELECT * FROM t ORDER BY k LIMIT 10'), '', 'a small LIMIT where rows come by the page');
is(decision('SELECT * FROM t ORDER BY k LIMIT 10', $by_row), '', 'and where they come one by one');
is(decision('SELECT * FROM t ORDER BY k LIMIT (SELECT 5)'), '',
	'a LIMIT that is not known yet is thought to be a tenth of the rows');
refused('SELECT * FROM t ORDER BY k LIMIT (SELECT 5)',
	'the sort alone would take [0-9.]+ ms, PostgreSQL.s [0-9.]+ ms for the rows that LIMIT asks', 'it is compared by cost',
	'SET gpusort.setup_cost = 1e9');
is(decision('SELECT * FROM t ORDER BY k OFFSET 50000 LIMIT 10'), '', 'nor a LIMIT behind a large OFFSET');
refused('SELECT * FROM t ORDER BY k OFFSET 5 LIMIT 10',
	'the sort alone would take [0-9.]+ ms, PostgreSQL.s [0-9.]+ ms for the rows that LIMIT asks', 'with OFFSET',
	'SET gpusort.setup_cost = 1e9');
refused('SELECT * FROM (SELECT * FROM t ORDER BY k LIMIT 10) s WHERE id > 5',
	'the sort alone would take [0-9.]+ ms, PostgreSQL.s [0-9.]+ ms for the rows that LIMIT asks', 'in a subquery',
	'SET gpusort.setup_cost = 1e9');
refused('SELECT * FROM small ORDER BY k LIMIT 400', '500 rows are fewer', 'few rows, of which most are asked for');
refused('SELECT * FROM t ORDER BY j LIMIT 90000', 'sort key 1', 'a type, with LIMIT');
refused('SELECT * FROM t ORDER BY k LIMIT 90000',
	'the sort alone would take [0-9.]+ ms, PostgreSQL.s [0-9.]+ ms for the rows that LIMIT asks', 'the cost, with LIMIT',
	'SET gpusort.setup_cost = 1e9');
refused('SELECT * FROM t ORDER BY k', 'the sort alone would take [0-9.]+ ms, PostgreSQL.s [0-9.]+ ms', 'the cost',
	'SET gpusort.setup_cost = 1e9');
refused('SELECT * FROM t ORDER BY k', 'the sort alone would take [0-9.]+ ms, PostgreSQL.s [0-9.]+ ms',
	'the same in parallel',
	'SET gpusort.setup_cost = 1e9', @parallel);
refused('SELECT * FROM small ORDER BY k', '[0-9]+ rows are fewer', 'few rows in parallel', @parallel);
refused('SELECT DISTINCT ON (k) * FROM t', 'the sort alone would take [0-9.]+ ms, PostgreSQL', 'DISTINCT ON',
	'SET gpusort.setup_cost = 1e9');
refused('SELECT *, rank() OVER (ORDER BY k) FROM t ORDER BY k', 'the sort alone would take [0-9.]+ ms, PostgreSQL',
	'a window in the order of the query', 'SET gpusort.setup_cost = 1e9');
is(scalar(split /\n/, decision('SELECT * FROM t a JOIN t b USING (k)', 'SET gpusort.setup_cost = 1e9',
	'SET enable_hashjoin = off', 'SET enable_nestloop = off', 'SET enable_material = off')), 2,
   'two lines where a merge join sorts twice');
$node->safe_psql('postgres', 'CREATE INDEX t_id ON t (id)');
is(decision('SELECT * FROM t ORDER BY id LIMIT 10'), '', 'nothing where an index has the order');
SKIP:
{
	skip 'no ICU', 2 if $node->safe_psql('postgres',
		q{SELECT count(*) FROM pg_collation WHERE collname = 'en-x-icu'}) == 0;
	is(decision('SELECT * FROM t ORDER BY s COLLATE "en-x-icu"', 'SET gpusort.force = on'), '', 'not an ICU collation');
	$node->safe_psql('postgres', q{CREATE COLLATION digits_last (provider = icu, locale = 'und-u-kr-latn-digit')});
	like(decision('SELECT * FROM t ORDER BY s COLLATE digits_last', 'SET gpusort.force = on'),
		qr/gpusort: not used: sort key 1 .*collation/, 'one with the digits elsewhere');
}
SKIP:
{
	skip 'there is a GPU', 1 if -e '/dev/nvidiactl';
	like(decision('SELECT * FROM t ORDER BY k', 'SET gpusort.force = on', 'SET gpusort.engine = cuda'),
		qr/gpusort: not used: .*cuda/, 'an engine that is not there');
}
# what is above a sort: one line for each that one process does alone
sub alone
{
	my ($query, $reason, $name) = @_;
	like(decision($query, 'SET gpusort.force = on', 'SET gpusort.setup_cost = 0', 'SET gpusort.row_cost = 0',
		'SET enable_hashagg = off', 'SET enable_hashjoin = off', 'SET enable_nestloop = off', @parallel,
		'SET parallel_tuple_cost = 1'),
		 $reason eq '' ? qr/\A\z/ : qr/\A[^\n]*gpusort: only one process does the work above a sort: $reason[^\n]*\z/, $name);
}
$node->safe_psql('postgres',
	q{CREATE FUNCTION restricted(bigint) RETURNS bigint LANGUAGE plpgsql STABLE PARALLEL RESTRICTED }
	. q{AS 'BEGIN RETURN $1; END'});
alone('SELECT sum(id) OVER (PARTITION BY k % 10 ORDER BY id) FROM t', '', 'nothing of a window that all processes do');
alone('SELECT sum(id) OVER (ORDER BY k) FROM t', '',
	'nor of one without PARTITION BY that goes on from the rows before');
alone('SELECT array_agg(id) OVER (ORDER BY k) FROM t', 'the sort does not begin with a column of the window',
	'a window without PARTITION BY that may need any row');
alone('SELECT k, id % 7, count(DISTINCT id) FROM t GROUP BY CUBE (k, id % 7)', '',
	'nothing of grouping sets that have a sort each');
alone('SELECT k, id % 7, id % 3, id % 2, count(DISTINCT id) FROM t GROUP BY CUBE (k, id % 7, id % 3, id % 2)',
	'the sort does not begin with a column of GROUP BY that all',
	'grouping sets with nothing in common, too many for that');
alone('SELECT k, restricted((count(DISTINCT id) + sum(0.5::float8))::bigint) FROM t GROUP BY k',
	'restricted\(\) is not parallel safe', 'a function');
alone('SELECT k, count(DISTINCT id) + sum(0.5::float8), random() FROM t GROUP BY k', 'random\(\) is not parallel safe',
	'a volatile function');
alone('SELECT * FROM t ORDER BY k', '', 'nothing of a mere sort');
alone('SELECT * FROM t ORDER BY k LIMIT 50000', '', 'nor with LIMIT');

is(decision('SELECT * FROM t ORDER BY k', 'SET gpusort.setup_cost = 0', 'SET gpusort.row_cost = 0'), '',
	'nothing when it is used');
is(decision('SELECT * FROM t ORDER BY k', 'SET gpusort.enable = off'), '', 'nor when it is off');
is(decision('SELECT * FROM t ORDER BY k', 'SET gpusort.allowed = off'), '', 'or not allowed');
is(decision('SELECT * FROM t'), '', 'nor without a sort');
my $before = length $node->log_text;
$node->safe_psql('postgres', 'EXPLAIN SELECT * FROM small ORDER BY k; EXPLAIN SELECT * FROM t ORDER BY j');
unlike(substr($node->log_text, $before), qr/gpusort: /, 'nor when nobody asked for it');

# auto_explain tells it of queries that run, from PostgreSQL 19 on
SKIP:
{
	skip 'auto_explain knows no options of other modules', 1
		if $node->safe_psql('postgres', 'SHOW server_version_num') < 190000;
	my $from = length $node->log_text;
	$node->safe_psql('postgres',
		q{LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET auto_explain.log_extension_options = 'gpusort'; }
		. q{SELECT count(*) FROM (SELECT * FROM small ORDER BY j OFFSET 0) s});
	like(substr($node->log_text, $from),
		qr/Sort Key: small\.j\s+GpuSort: not used: 500 rows are fewer than gpusort\.min_rows/, 'auto_explain logs it');
}

# rows that change while they are locked in order: PostgreSQL rechecks the query for one row
my $locker = $node->session;
$locker->run('BEGIN; UPDATE t SET k = -k WHERE id IN (10, 20)');
my $session = $node->session;
$session->run('SET gpusort.force = on; SET gpusort.min_rows = 0');
$session->send('SELECT id, k FROM t WHERE id <= 30 ORDER BY k, id FOR UPDATE');
ok(wait_until(sub { $node->ask(
	q{SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'}) == 1 }), 'a sort FOR UPDATE waits for a row');
$locker->run('COMMIT');
my ($out, $err) = $session->result;
is($err, '', 'it goes on');
is(join("\n", sort split /\n/, $out), join("\n", sort split /\n/,
	$node->safe_psql('postgres', 'SELECT id, k FROM t WHERE id <= 30')), 'with the rows as they are now');

# the same where a subquery with a sort is part of what is rechecked
$locker->run('BEGIN; UPDATE t SET k = -k WHERE id IN (10, 20)');
$session->send('SELECT a.id, a.k, s.n FROM t a JOIN (SELECT k % 10 AS g, count(*) AS n FROM small GROUP BY 1 '
	. 'ORDER BY 2 DESC, 1 OFFSET 0) s ON s.g = a.id % 10 WHERE a.id <= 30 ORDER BY a.id FOR UPDATE OF a');
ok(wait_until(sub { $node->ask(q{SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'}) == 1 }),
	'a join with a sorted subquery waits for a row');
$locker->run('COMMIT');
($out, $err) = $session->result;
is($err, '', 'it goes on');
is($out, $node->safe_psql('postgres', 'SET gpusort.enable = off; SELECT a.id, a.k, s.n FROM t a '
	. 'JOIN (SELECT k % 10 AS g, count(*) AS n FROM small GROUP BY 1 '
	. 'ORDER BY 2 DESC, 1 OFFSET 0) s ON s.g = a.id % 10 WHERE a.id <= 30 ORDER BY a.id'),
   'with the rows as they are now');
$_->close for $locker, $session;

done_testing;
