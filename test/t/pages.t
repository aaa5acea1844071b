# Rows in by the page, beside others: updates, deletes, vacuums and truncated tails while scans run; predicate locks;
# pages in no buffer; what the statistics count; a standby.  A snapshot's answer is the same by the page, one by one and
# natively.
use strict;
use warnings;

use GpuSortNode;
use Test::More;
use Time::HiRes qw(sleep);

my $node = GpuSortNode->new('main');
$node->init(conf => [ 'wal_level = replica', 'max_wal_senders = 4', 'max_parallel_workers = 8', 'gpusort.force = on',
	'parallel_setup_cost = 0', 'parallel_tuple_cost = 0', 'min_parallel_table_scan_size = 0', 'autovacuum = off',
	'synchronize_seqscans = on' ]);
$node->start;
$node->wait_service;
$node->safe_psql('postgres', q{
	CREATE EXTENSION gpusort;
	CREATE TABLE accounts (id int PRIMARY KEY, amount bigint NOT NULL, note text, k int) WITH (fillfactor = 80);
	INSERT INTO accounts SELECT i, 1000, repeat('n', i % 60), (i * 7919) % 5003 FROM generate_series(1, 20000) i;
	ANALYZE accounts;
});

# The rows of a query as one value, in their order.
sub digest
{
	my ($query) = @_;
	return "SELECT count(*) || ' ' || md5(string_agg(md5(q::text), '')) FROM ($query) q";
}

my @queries = (
	'SELECT * FROM accounts ORDER BY k, id',
	'SELECT amount, id FROM accounts WHERE amount > 1000 ORDER BY amount, id',
	'SELECT id, ctid FROM accounts WHERE k < 2500 AND length(note) > 10 ORDER BY note COLLATE "C", id',
	'SELECT k, sum(amount) FROM accounts GROUP BY k ORDER BY k',
	'SELECT id + 1, note || 1, ctid FROM accounts WHERE k < 4000 ORDER BY id + 1',
	'SELECT * FROM (SELECT id, amount FROM accounts UNION ALL SELECT k, amount FROM accounts WHERE length(note) > 10) u '
		. 'ORDER BY 1, 2');

# --- writers beside the scan ------------------------------------------------------------------------

my $transfer = q{DO $$
DECLARE
	giver int;
	taker int;
BEGIN
	FOR i IN 1 .. 200 LOOP
		giver := 1 + (random() * 9999)::int;
		taker := 10001 + (random() * 9999)::int;
		UPDATE accounts SET amount = amount - 7, note = left(note || 'x', 90) WHERE id = giver;
		UPDATE accounts SET amount = amount + 7 WHERE id = taker;
		IF i % 50 = 0 THEN
			DELETE FROM accounts WHERE id > 20000 AND id % 3 = i % 3;
			INSERT INTO accounts SELECT i * 1000 + 20000 + j, 0, 'new', j FROM generate_series(1, 200) j
			ON CONFLICT DO NOTHING;
			DELETE FROM accounts WHERE id > 20000;
			COMMIT;
		END IF;
	END LOOP;
END $$};
my @writers = map { $node->session } 1 .. 2;
my $vacuum = $node->session;
my $reader = $node->session;
my ($rounds, $written, $sums, @wrong, @said) = (0, 0, '');
# each query both ways, twice, and longer where writers have not got far
while ($rounds < 4 * @queries || $written < 6 && $rounds < 400)
{
	# each goes on when it is done
	for my $session ($vacuum, @writers)
	{
		next unless $rounds == 0 || $session->answered;
		push @said, ($session->result)[1] if $rounds;
		$session->send($session != $vacuum ? $transfer : $rounds % 3 ? 'VACUUM accounts' : 'VACUUM (FREEZE) accounts');
		$written += $session != $vacuum;
	}
	my $query = digest($queries[$rounds % @queries]);
	$reader->run('SET max_parallel_workers_per_gather = ' . ($rounds % 2 ? 2 : 0));
	$reader->run('BEGIN ISOLATION LEVEL REPEATABLE READ');
	my @answers = map { $reader->run("SET LOCAL gpusort.page_scan = $_; $query") } qw(on off on);
	my $native = $reader->run("SET LOCAL gpusort.enable = off; $query");
	push @wrong, "$query: @answers, natively $native" if grep { $_ ne $native } @answers;
	my $sum = $reader->run('SET LOCAL gpusort.enable = on; '
		. 'SELECT sum(amount) FROM (SELECT amount FROM accounts ORDER BY k, id OFFSET 0) s');
	$sums .= $sum eq '20000000' ? '' : "$sum ";
	$reader->run('COMMIT');
	$rounds++;
}
is_deeply(\@wrong, [], "$rounds snapshots' answers are the same every way while others write");
is($sums, '', 'no amount is seen twice or not at all');
push @said, map { ($_->result)[1] } @writers, $vacuum;
cmp_ok($written, '>=', 6, 'they wrote');
is_deeply([ grep { /ERROR/ && !/deadlock|update concurrently/ } @said ], [], 'writers and vacuum were not disturbed');
like($node->safe_psql('postgres', "EXPLAIN (COSTS OFF) $queries[0]"), qr/GpuSort/, 'the sort was a GpuSort');

# --- predicate locks ---------------------------------------------------------------------------------

# Two transactions read all rows and each writes one that the other has read: one must fail.
sub write_skew
{
	my ($page_scan) = @_;
	my @sessions = map { $node->session } 1 .. 2;
	$node->safe_psql('postgres', q{DROP TABLE IF EXISTS duty;
		CREATE TABLE duty AS SELECT i AS id, i % 7 AS k, true AS on_call, repeat('d', 50) AS note
			FROM generate_series(1, 1000) i});
	for my $i (0, 1)
	{
		$sessions[$i]->run("SET gpusort.page_scan = $page_scan; BEGIN ISOLATION LEVEL SERIALIZABLE");
		$sessions[$i]->run('SELECT count(*) FROM (SELECT * FROM duty WHERE on_call ORDER BY k, id OFFSET 0) s');
	}
	my @errors;
	for my $i (0, 1)
	{
		my $who = 1 + 900 * $i;
		$sessions[$i]->send("UPDATE duty SET on_call = false WHERE id = $who; COMMIT");
		push @errors, ($sessions[$i]->result)[1];
	}
	return scalar grep { /could not serialize access/ } @errors;
}
is(write_skew('on'), 1, 'write skew is detected where rows come by the page');
is(write_skew('off'), 1, 'as where they come one by one');

# A writer that committed before a page is read, after the snapshot, is a conflict, too.
sub conflict_out
{
	my ($page_scan) = @_;
	my ($one, $two) = map { $node->session } 1 .. 2;
	$node->safe_psql('postgres', q{DROP TABLE IF EXISTS duty, sums; CREATE TABLE sums (v int);
		CREATE TABLE duty AS SELECT i AS id, i % 7 AS k FROM generate_series(1, 1000) i});
	$_->run("SET gpusort.page_scan = $page_scan; BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*) FROM sums")
		for $one, $two;
	$two->run('UPDATE duty SET k = k + 1 WHERE id = 990');
	$two->run('INSERT INTO sums VALUES (1); COMMIT');
	$one->run('SELECT count(*) FROM (SELECT * FROM duty ORDER BY k, id OFFSET 0) s');
	$one->send('INSERT INTO sums VALUES (2); COMMIT');
	return ($one->result)[1] =~ /could not serialize access/ ? 1 : 0;
}
is(conflict_out('on'), 1, 'a version that is not visible is a conflict by the page');
is(conflict_out('off'), 1, 'as one by one');

# --- pages that are in no buffer ---------------------------------------------------------------------

$node->append_conf('postgresql.conf', "shared_buffers = 1MB\ntemp_buffers = 100");
$node->restart;
$node->wait_service;
my $few_buffers = $node->session;
$few_buffers->run('CREATE TEMP TABLE elsewhere AS SELECT * FROM accounts');
@wrong = ();
for my $query (map { digest($_), digest(s/accounts/elsewhere/gr) } @queries)
{
	my @answers = map { $few_buffers->run("SET gpusort.page_scan = $_; $query") } qw(on off);
	my $native = $few_buffers->run("SET gpusort.enable = off; $query");
	$few_buffers->run('RESET gpusort.enable');
	push @wrong, "$query: @answers, natively $native" if grep { $_ ne $native } @answers;
}
is_deeply(\@wrong, [], 'tables larger than all buffers are the same every way');
like($few_buffers->run('EXPLAIN (COSTS OFF) SELECT * FROM elsewhere ORDER BY k, id'), qr/GpuSort/, 'by a GpuSort');

# --- what the statistics count -----------------------------------------------------------------------

my %counts;
for my $way (qw(native on off))
{
	$node->safe_psql('postgres',
		"CREATE TABLE counted_$way AS SELECT * FROM accounts; DELETE FROM counted_$way WHERE id % 10 = 0");
	my $session = $node->session;
	$session->run($way eq 'native' ? 'SET gpusort.enable = off' : "SET gpusort.page_scan = $way");
	$session->run("SELECT count(*) FROM (SELECT * FROM counted_$way $_ OFFSET 0) s")
		for 'ORDER BY k, id', 'WHERE k < 100 ORDER BY k, id', 'WHERE length(note) > 20 ORDER BY note COLLATE "C", id';
	$session->run('SET max_parallel_workers_per_gather = 2');
	$session->run("SELECT count(*) FROM (SELECT id FROM counted_$way ORDER BY k, id OFFSET 0) s");
	$session->run('SELECT pg_stat_force_next_flush()');
	$session->run('SELECT 1');
	my $scans;
	($scans, $counts{$way}) = split /\|/, $node->safe_psql('postgres',
		"SELECT seq_scan, seq_tup_read FROM pg_stat_user_tables WHERE relname = 'counted_$way'");
	cmp_ok($scans, '>=', 5, "$way: scans are counted");
}
cmp_ok($counts{native}, '>', 50000, 'rows that scans have read are counted');
is($counts{on}, $counts{native}, 'by the page the same');
is($counts{off}, $counts{native}, 'and one by one');

# --- a standby ---------------------------------------------------------------------------------------

$node->backup('standby');
my $standby = GpuSortNode->new('standby');
$standby->init_from_backup($node, 'standby', has_streaming => 1);
$standby->append_conf('postgresql.conf', 'hot_standby_feedback = on');
$standby->start;
$standby->wait_service;
my $there = $standby->session;
my $writer = $node->session;
@wrong = ();
for my $round (1 .. 4)
{
	$writer->send($transfer);
	for my $query (map { digest($_) } @queries)
	{
		$there->run('BEGIN ISOLATION LEVEL REPEATABLE READ');
		my @answers = map { $there->run("SET LOCAL gpusort.page_scan = $_; $query") } qw(on off);
		my $native = $there->run("SET LOCAL gpusort.enable = off; $query");
		push @wrong, "$query: @answers, natively $native" if grep { $_ ne $native } @answers;
		$there->run('COMMIT');
	}
	$writer->result;
	$node->safe_psql('postgres', 'VACUUM accounts');
}
is_deeply(\@wrong, [], 'a standby answers the same every way while it replays');
$node->wait_for_catchup($standby, 'replay');
is($there->run(digest($queries[0])), $node->safe_psql('postgres', digest($queries[0])), 'and what the primary answers');
like($there->run("EXPLAIN (COSTS OFF) $queries[0]"), qr/GpuSort/, 'by a GpuSort');

# The primary does not know that a snapshot of the standby still sees a row, and summarises its range without it.
$standby->append_conf('postgresql.conf', 'hot_standby_feedback = off');
$standby->reload;
ok(wait_until(sub { $node->ask('SELECT count(*) FROM pg_stat_replication WHERE backend_xmin IS NULL') == 1 }),
	'the standby says nothing of its snapshots');
$node->safe_psql('postgres', q{
	CREATE TABLE summarised AS SELECT CASE i WHEN 5 THEN 99999 ELSE i END AS v, repeat('p', 60) AS pad
		FROM generate_series(1, 8000) i;
	CREATE INDEX summarised_v ON summarised USING brin (v) WITH (pages_per_range = 1);
	ANALYZE summarised;
});
$node->wait_for_catchup($standby, 'replay');
my $last = 'SELECT v FROM summarised ORDER BY v DESC LIMIT 1';
$there->run('SET gpusort.force = on; SET max_parallel_workers_per_gather = 0; BEGIN ISOLATION LEVEL REPEATABLE READ');
like($there->run("EXPLAIN (COSTS OFF) $last"), qr/Block Ranges/, 'by ranges');
is($there->run($last), 99999, 'a row');
$node->safe_psql('postgres', q{DELETE FROM summarised WHERE v = 99999});
$node->safe_psql('postgres', q{
	SELECT brin_desummarize_range('summarised_v', 0), brin_summarize_new_values('summarised_v')});
$node->wait_for_catchup($standby, 'replay');
is($there->run($last), 99999, 'that is deleted stays in the snapshot');
$there->run('COMMIT');
is($there->run($last), 8000, 'and then it is gone');

$standby->stop;
$node->stop;
for my $server ($node, $standby)
{
	is($server->log_text =~ /PANIC|TRAP|terminated by signal|refcount leak|WARNING:.*leak/ ? $& : '', '', 'a clean log');
}
done_testing();
