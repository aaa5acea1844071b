# What the service says and sends is wrong, in every way that src/service/fault.h knows, at every
# chunk of a sort of six: queries give PostgreSQL's own answer or a clean error, and the server does
# not notice.  GPUSORT_FAULTS=all tries every fault with every query, which takes minutes.
use strict;
use warnings;

use GpuSortNode;
use Test::More;
use Time::HiRes qw(time);

my $all = ($ENV{GPUSORT_FAULTS} // '') eq 'all';
my $chunks = 6;
my $digest = q{SELECT count(*) || md5(string_agg(id || ' ' || hashtext(pad), ',')) FROM (%s) s};
my $fetch = 'SELECT id, hashtext(pad) FROM (SELECT id, k, pad FROM t ORDER BY k OFFSET 0) s';

# Queries, and what they need to be set.
my %queries = (
	plain => sprintf($digest, 'SELECT id, k, pad FROM t ORDER BY k OFFSET 0'),
	hidden => sprintf($digest, 'SELECT id, pad FROM t ORDER BY k OFFSET 0'),
	ties => sprintf($digest,
		q{SELECT id, pad, (repeat(chr(97 + id % 2), 300) || k) COLLATE "C" AS text FROM t ORDER BY text OFFSET 0}),
	wide => sprintf($digest, 'SELECT id, k, CASE WHEN id % 1200 = 0 THEN repeat(pad, 700) ELSE pad END AS pad FROM t '
	. 'ORDER BY k OFFSET 0'),
	limit => sprintf($digest, 'SELECT id, k, pad FROM t ORDER BY k LIMIT 7500'),
	offset => sprintf($digest, 'SELECT id, k, pad FROM t ORDER BY k OFFSET 2000'),
	# of which rows are dropped while they are taken in
	first => sprintf($digest, 'SELECT id, k, pad FROM t ORDER BY k LIMIT 3000'),
	first_parallel => sprintf($digest, 'SELECT id, k, pad FROM t ORDER BY k DESC LIMIT 3000'),
	backward => "BEGIN; DECLARE c SCROLL CURSOR FOR $fetch; FETCH 6000 c; FETCH BACKWARD 2000 c; FETCH ALL c; COMMIT",
	early => "BEGIN; DECLARE c NO SCROLL CURSOR FOR $fetch; FETCH 6000 c; CLOSE c; COMMIT",
	rewind => sprintf($digest, 'SELECT o, s.* FROM generate_series(1, 2) o LEFT JOIN LATERAL (SELECT id, k, pad '
	. 'FROM t ORDER BY k OFFSET 0) s ON s.id >= o - 2'),
	merge => sprintf($digest, 'SELECT a.* FROM t a JOIN t b ON a.k / 2 = b.k / 2'),
	parallel => sprintf($digest, 'SELECT id, k, pad FROM t ORDER BY k OFFSET 0'),
	window => sprintf($digest, 'SELECT id, pad || sum(id) OVER (PARTITION BY k / 10 ORDER BY k) AS pad FROM t '
	. 'ORDER BY k / 10, k OFFSET 0'),
	joined => sprintf($digest, 'SELECT a.* FROM t a JOIN t b USING (k) ORDER BY k OFFSET 0'),
	counted => sprintf($digest, 'SELECT count(*) AS id, pad FROM t GROUP BY k, pad'),
	counted_parallel => sprintf($digest, 'SELECT count(*) AS id, pad FROM t GROUP BY k, pad'),
	part => sprintf($digest, 'SELECT a.* FROM t a JOIN t b ON a.k / 20 = b.k / 20 ORDER BY a.k / 20, a.k, b.k OFFSET 0'));
my %settings = (
	# more rows than a process finds by itself
	limit => "SET work_mem = '64kB'",
	first => "SET work_mem = '64kB'",
	merge => 'SET enable_material = off; SET enable_hashjoin = off; SET enable_nestloop = off',
	rewind => 'SET enable_material = off',
	parallel => 'SET max_parallel_workers_per_gather = 2',
	first_parallel => q{SET max_parallel_workers_per_gather = 2; SET work_mem = '64kB'},
	window => 'SET max_parallel_workers_per_gather = 2',
	joined => 'SET max_parallel_workers_per_gather = 2; SET enable_hashjoin = off; SET enable_nestloop = off',
	counted => 'SET enable_hashagg = off',
	counted_parallel => 'SET max_parallel_workers_per_gather = 2; SET enable_hashagg = off',
	# a sort of each process's own, of its part of the rows
	part => 'SET max_parallel_workers_per_gather = 2; SET enable_hashjoin = off; SET enable_nestloop = off; '
		. 'SET gpusort.parallel_output = off');

# What the checks find that are always there, what verify_rows finds, and what goes wrong where
# rows are put; of these and of messages the first few are enough.
my @structure = qw(drop_row drop_row_and_bytes last_early last_missing skip_chunk no_rows send_twice more_rows
	more_bytes
	huge_bytes other_epoch chunk_range zero_length short_length huge_length long_length false_overflow
	false_flags false_tie tie_at_end insert_row);
my @content = qw(other_chunk chunk_again lost_tie duplicate_row swap_rows flip_bit flip_header flip_end);
# of rows that carry how many they stand for
my @counts = qw(false_count);
my @sorted = qw(sorted_more_rows sorted_fewer_rows sorted_rows_in sorted_bytes);
my @ranges = qw(ranges_range ranges_more ranges_first ranges_swapped ranges_beyond);
my @grants = qw(grant_range grant_missing);
my @begin = qw(job_token job_engine welcome_bytes welcome_chunks welcome_id welcome_other_id);
my @messages = qw(message_short message_long message_version message_type message_late);

my $node = GpuSortNode->new('main');
$node->init(conf => [ 'work_mem = 64MB', 'parallel_setup_cost = 0', 'parallel_tuple_cost = 0',
	'min_parallel_table_scan_size = 0' ]);
$node->own_module(gpusortd => $fault_service);
$node->start;
$node->wait_service;
$node->safe_psql('postgres', q{
	CREATE TABLE t AS SELECT i AS id, (i::bigint * 7919) % 1000003 AS k, repeat(chr(97 + i % 26), 1940) AS pad
		FROM generate_series(1, 12000) i;
	ANALYZE t});

my (%native, %session, %happened, %count);

# A session that is set up for a query.
sub session_for
{
	my ($query) = @_;
	return $session{$query} //= do {
		my $session = $node->session;
		# a guard against hanging
		$session->run("SET statement_timeout = '170s'; SET gpusort.force = on; " . ($settings{$query} // ''));
		$session;
	};
}

# One query with one fault: counts what came of it.
sub try_fault
{
	my ($query, $fault, $set) = @_;
	my $session = session_for($query);
	my ($name) = split / /, $fault;
	# a chunk that does not come, the last one, is waited for longer than this test has time: it is cancelled then
	my $never = $name =~ /^(?:skip_chunk|other_epoch)$/;

	$node->choose_fault($fault);
	$session->send("$set; $queries{$query}");
	if ($never)
	{
		wait_until(sub { $node->fault_happened || $session->answered });
		until (wait_until(sub { $session->answered }, 0.5))
		{
			$node->ask('SELECT pg_cancel_backend(' . $session->backend . ')');
		}
	}
	my ($out, $err) = $session->result;
	$session->run('ROLLBACK') if $queries{$query} =~ /BEGIN/ && $err ne '';
	my $happened = $node->fault_happened;
	my $outcome = $err =~ /server closed the connection|terminating connection/ ? 'crash'
		: $err =~ /ERROR:  (?:XX001|58000):/ ? 'error'
		: $never && $err =~ /ERROR:  57014:/ ? 'cancelled'
		: $err =~ /ERROR/ ? 'odd error'
		: $out eq $native{$query} ? 'right'
		: 'wrong';

	$happened{$name} += $happened;
	$count{$happened ? $outcome : "$outcome, no fault"}++;
	diag "$query, $fault, $set: $outcome, ", length $out > 100 ? length $out : $out, " $err"
		unless $outcome =~ /^(?:right|error|cancelled)$/;
	BAIL_OUT('the server has crashed') if $outcome eq 'crash';
	return;
}

for my $query ('window', 'joined', 'counted_parallel')
{
	like(session_for($query)->run("EXPLAIN $queries{$query}"), qr/GpuSortExchange/, "$query: every process reads rows");
}
like(session_for('counted')->run("EXPLAIN $queries{counted}"), qr/counted/, 'the service counts groups');
# Every query gives the native answer while nothing is wrong, and has six chunks.
for my $query (sort keys %queries)
{
	my $session = session_for($query);

	$session->run('SET gpusort.enable = off');
	$native{$query} = $session->run($queries{$query});
	$session->run('SET gpusort.enable = on');
	is($session->run($queries{$query}), $native{$query}, "$query: the native answer");
}
for my $on ('on', 'off')
{
	for my $at ($chunks, $chunks + 1)
	{
		$node->choose_fault("exit_service $at") if $at > $chunks;
		session_for('plain')->run("SET gpusort.verify_rows = $on; $queries{plain}");
		ok(!$node->fault_happened, "a sort has $chunks chunks, verify_rows $on") if $at > $chunks;
	}
}

my $start = time;
my $verify = 'SET gpusort.verify_rows = on';
my $default = 'SET gpusort.verify_rows = off';
my $seed = 0;
my @rest = grep { $_ ne 'plain' } sort keys %queries;
# one that stops reading early cannot tell the rows of a wrong chunk from its own, if they are in order
my @complete = grep { !/^(?:early|limit|first|first_parallel|merge)$/ } @rest;
my @shared = ('window', 'joined');
for my $fault (@structure, @content)
{
	my $set = (grep { $_ eq $fault } @content) ? $verify : $default;

	for my $at (1 .. $chunks)
	{
		my @possible = $fault =~ /^(?:chunk_again|other_chunk)$/ ? @complete : @rest;
		my @others = $all ? @possible : $fault =~ /tie/ ? 'ties' : $at % 2 ? $possible[ $seed % @possible ] : ();
		try_fault($_, "$fault $at " . ++$seed, $set) for 'plain', $shared[ $at % @shared ], @others;
	}
}
for my $at (1 .. $chunks)
{
	try_fault($at % 2 ? 'counted' : 'counted_parallel', "false_count $at " . ++$seed, $at < 4 ? $verify : $default);
}
for my $fault (@sorted, @grants, @begin, @messages)
{
	# the second token is a worker's, the fourth is a reader's
	for my $at (1 .. ($fault =~ /message/ ? 8 : $fault =~ /grant/ ? 4 : $fault eq 'job_token' ? 4 : 1))
	{
		try_fault($_, "$fault $at", $default) for $all ? sort keys %queries : ('plain', 'parallel', @shared);
	}
}
# of a join's two sorts the second is cut where the first one was
for my $fault (@ranges)
{
	try_fault('joined', "$fault 2 " . ++$seed, $verify);
	try_fault($_, "$fault 1 " . ++$seed, $verify) for @shared;
}
try_fault($_, 'grant_twice ' . $_, $verify) for 'plain', 'parallel';

is($count{$_} // 0, 0, "no $_") for 'wrong', 'crash', 'odd error';
is(join(' ', grep { !$happened{$_} } @structure, @content, @counts, @sorted, @ranges, @grants, @begin, @messages), '',
	'every fault happened');
note sprintf('%d trials in %.0f s: ', eval { my $n = 0; $n += $_ for values %count; $n }, time - $start),
	join(', ', map { "$count{$_} $_" } sort keys %count);
unlike($node->log_text, qr/PANIC|terminating any other active server processes/, 'without a restart of the server');
$node->choose_fault;
is(session_for('plain')->run($queries{plain}), $native{plain}, 'and the service sorts');

done_testing;
