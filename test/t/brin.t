# First rows by a BRIN index, beside others: rows that come, go and move while ranges are summarised and forgotten.  In
# one statement the last rows by ranges are those of a scan of the whole table; older snapshots see what they are to.
use strict;
use warnings;

use GpuSortNode;
use Test::More;

my $node = GpuSortNode->new('main');
$node->init(conf => [ 'gpusort.force = on', 'max_parallel_workers_per_gather = 0', 'autovacuum = off' ]);
$node->start;
$node->wait_service;
$node->safe_psql('postgres', q{
	CREATE EXTENSION gpusort;
	CREATE TABLE log (id int, v int, pad text) WITH (fillfactor = 70);
	INSERT INTO log SELECT i, i, repeat('p', 60) FROM generate_series(1, 8000) i;
	CREATE INDEX log_v ON log USING brin (v) WITH (pages_per_range = 1);
	ANALYZE log;
});

my $last = 'SELECT v FROM log ORDER BY v DESC LIMIT 30';
my $plan = $node->safe_psql('postgres', "EXPLAIN (COSTS OFF) $last");
like($plan, qr/Block Ranges: by BRIN index log_v/, 'by ranges');

# --- writers beside the scan ------------------------------------------------------------------------

my $churn = q{DO $$
BEGIN
	FOR i IN 1 .. 40 LOOP
		INSERT INTO log SELECT 8000 + j, 8000 + (random() * 2000)::int, repeat('n', 60) FROM generate_series(1, 20) j;
		UPDATE log SET v = v + 3000 WHERE id = 1 + (random() * 7000)::int;
		DELETE FROM log WHERE id > 8000 AND random() < 0.7;
		IF i % 10 = 0 THEN
			PERFORM brin_desummarize_range('log_v', (random() * 150)::int);
			PERFORM brin_summarize_new_values('log_v');
		END IF;
		COMMIT;
	END LOOP;
END $$};
my $reader = $node->session;
my @writers = map { $node->session } 1 .. 2;
my ($rounds, $written, @wrong, @said) = (0, 0);
while ($rounds < 60 || $written < 6 && $rounds < 1000)
{
	for my $session (@writers)
	{
		next unless $rounds == 0 || $session->answered;
		push @said, ($session->result)[1] if $rounds;
		$session->send($churn);
		$written++;
	}
	# of one snapshot
	my $same = $reader->run("SELECT (SELECT array_agg(v ORDER BY v DESC) FROM ($last) s) =
		(SELECT (array_agg(v ORDER BY v DESC))[:30] FROM log)");
	push @wrong, $rounds if $same ne 't';
	$rounds++;
}
is_deeply(\@wrong, [], "$rounds statements' last rows are right while others write");
push @said, map { ($_->result)[1] } @writers;
is_deeply([ grep { /ERROR/ && !/deadlock/ } @said ], [], 'writers were not disturbed');

# --- older snapshots --------------------------------------------------------------------------------

# From PostgreSQL 16 on the update is HOT, and a range that is summarised after it does not have the old value.
$node->safe_psql('postgres', q{TRUNCATE log;
	INSERT INTO log SELECT i, i, repeat('p', 60) FROM generate_series(1, 8000) i;
	VACUUM ANALYZE log; SELECT brin_summarize_new_values('log_v')});
my @isolation = ('REPEATABLE READ', 'SERIALIZABLE');
my $writer = $writers[0];
for my $level (@isolation)
{
	$reader->run("BEGIN ISOLATION LEVEL $level");
	$reader->run('SELECT count(*) FROM pg_class');
	my $before = $reader->run('SELECT v FROM log ORDER BY v DESC LIMIT 2');
	$writer->run("UPDATE log SET v = 5 WHERE v = (SELECT max(v) FROM log);
		SELECT brin_desummarize_range('log_v', (ctid::text::point)[0]::int) FROM log WHERE v = 5;
		SELECT brin_summarize_new_values('log_v')");
	is($reader->run('SELECT v FROM log ORDER BY v DESC LIMIT 2'), $before, "$level: the snapshot's");
	$reader->run('COMMIT');
	isnt($reader->run('SELECT v FROM log ORDER BY v DESC LIMIT 2'), $before, 'and then the others');
}

$reader->run("BEGIN; DECLARE c CURSOR FOR $last");
my $before = $reader->run('SELECT max(v) FROM log');
$writer->run("UPDATE log SET v = 6 WHERE v = (SELECT max(v) FROM log);
	SELECT brin_desummarize_range('log_v', (ctid::text::point)[0]::int) FROM log WHERE v = 6;
	SELECT brin_summarize_new_values('log_v'); INSERT INTO log VALUES (9000, 99999, '')");
is($reader->run('FETCH c'), $before, 'a cursor has the rows of its beginning');
$reader->run('COMMIT');

# A function that is not volatile sees what the statement around it sees, however late it looks.
$reader->run(q{CREATE FUNCTION late_max() RETURNS int STABLE LANGUAGE plpgsql AS $$
	DECLARE last int;
	BEGIN
		PERFORM pg_advisory_lock(7), pg_advisory_unlock(7);
		SELECT v INTO last FROM log ORDER BY v DESC LIMIT 1;
		RETURN last;
	END $$});
$before = $reader->run('SELECT late_max()');
is($before, $reader->run('SELECT max(v) FROM log'), 'a function');
$writer->run('SELECT pg_advisory_lock(7)');
$reader->send('SELECT late_max()');
ok(wait_until(sub { $node->ask('SELECT count(*) FROM pg_locks WHERE NOT granted') == 1 }), 'which is late');
$writer->run("UPDATE log SET v = 7 WHERE v = $before;
	SELECT brin_desummarize_range('log_v', (ctid::text::point)[0]::int) FROM log WHERE v = 7;
	SELECT brin_summarize_new_values('log_v'), pg_advisory_unlock(7)");
is(($reader->result)[0], $before, 'has the row of its statement');

# Two transactions read the last rows and each writes what the other would have read: one must fail.
my @sessions = map { $node->session } 1 .. 2;
for my $session (@sessions)
{
	$session->run("BEGIN ISOLATION LEVEL SERIALIZABLE; $last");
}
my @errors;
for my $i (0, 1)
{
	$sessions[$i]->send("INSERT INTO log VALUES (1, 200000 + $i, ''); COMMIT");
	push @errors, ($sessions[$i]->result)[1];
}
is(scalar(grep { /could not serialize access/ } @errors), 1, 'write skew is detected');

# So it must if one of them, a cursor, has read the index and not yet the table when the other inserts.
my $first = 'SELECT v FROM log ORDER BY v LIMIT 1';
$sessions[0]->run("CREATE TABLE skew (v int); BEGIN ISOLATION LEVEL SERIALIZABLE; DECLARE c CURSOR FOR $first");
$sessions[1]->run('BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*) FROM skew');
$sessions[1]->run("INSERT INTO log VALUES (1, -1, ''); COMMIT");
$sessions[0]->send('FETCH c; INSERT INTO skew VALUES (1); COMMIT');
like(($sessions[0]->result)[1], qr/could not serialize access/, 'write skew of a cursor is detected');

# --- the index goes ---------------------------------------------------------------------------------

$reader->run("SET plan_cache_mode = force_generic_plan; PREPARE p AS $last");
my $rows = $reader->run('EXECUTE p');
$node->safe_psql('postgres', 'DROP INDEX CONCURRENTLY log_v');
is($reader->run('EXECUTE p'), $rows, 'a plan that is kept goes without an index that another session drops');

$node->stop;
done_testing();
