# Workers of statements that PostgreSQL runs without, under stress: what is fetched from piece by piece, by cursors, by
# the protocol and by psql, and INSERT.  The service killed, queries cancelled, workers terminated while they take rows
# in: answers are right or errors clean, and no worker is left.
use strict;
use warnings;

use GpuSortNode;
use IO::Socket::UNIX;
use Test::More;

my $node = GpuSortNode->new('main');
$node->init(conf => [ 'max_parallel_workers_per_gather = 2', 'max_parallel_workers = 8', 'parallel_setup_cost = 0',
	'parallel_tuple_cost = 0', 'min_parallel_table_scan_size = 0', 'parallel_leader_participation = off',
	'gpusort.force = on' ]);
$node->start;
my $service = $node->wait_service;
$node->safe_psql('postgres', q{
	CREATE TABLE t AS SELECT i AS id, (i * 7919) % 30007 AS k, 'row number ' || i AS pad
		FROM generate_series(1, 60000) i;
	CREATE TABLE w (id int, pad text) WITH (autovacuum_enabled = off);
	ANALYZE t;
	CREATE FUNCTION process(int) RETURNS int LANGUAGE plpgsql STABLE PARALLEL SAFE COST 1
		AS 'BEGIN RETURN pg_backend_pid(); END';
	CREATE FUNCTION leader_gate(i int, at int) RETURNS int LANGUAGE plpgsql STABLE PARALLEL RESTRICTED COST 1
		AS 'BEGIN RETURN gate(i, at); END';
} . gate_sql('STABLE PARALLEL SAFE COST 1'));
my $expected = $node->safe_psql('postgres', 'SET gpusort.enable = off; SELECT id, pad FROM t ORDER BY k, id');
my $holder = $node->session;
my $bystander = $node->session;

# A supervisor that has seen no service killed starts the next one soon.
sub restart
{
	$_->close for $holder, $bystander;
	$node->restart;
	$service = $node->wait_service;
	($holder, $bystander) = map { $node->session } 1 .. 2;
	return;
}

sub waits_at_gate
{
	return wait_until(sub { $bystander->run(
		q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted}) > 0 });
}

# What is done while workers of a statement wait in the middle of the table.
my $gated = 'SELECT id, pad FROM t WHERE gate(id, 40000) > 0 ORDER BY k, id';
my $numbered = 'SELECT id, pad, row_number() OVER (ORDER BY k, id) AS n FROM t';
my $window = "$numbered WHERE gate(id, 40000) > 0";
my %ways = (
	cursor => [ "DECLARE c NO SCROLL CURSOR FOR $gated", 'FETCH ALL FROM c' ],
	window => [ "DECLARE c CURSOR FOR SELECT id, pad FROM ($window) s WHERE n > 0", 'FETCH ALL FROM c' ],
	scroll => [ "DECLARE c SCROLL CURSOR FOR $gated", 'FETCH ALL FROM c' ],
	hold => [ "DECLARE c CURSOR WITH HOLD FOR $gated", 'COMMIT; BEGIN; FETCH ALL FROM c; CLOSE c' ],
	insert => [ 'TRUNCATE w', "INSERT INTO w $gated; SELECT id, pad FROM w ORDER BY ctid" ]);

for my $way (sort keys %ways)
{
	my ($before, $statement) = @{ $ways{$way} };
	my $session = $node->session;

	# the service killed: rows are read again, by workers
	$holder->run('SELECT pg_advisory_lock(1)');
	$session->run("BEGIN; $before");
	$session->send($statement);
	ok(waits_at_gate, "$way: a worker waits in the middle");
	# it may be the leader that waits, before workers have started
	ok(wait_until(sub { $node->parallel_workers > 0 }), 'it is there');
	kill 'KILL', $service;
	ok(wait_until(sub { !grep { $_ == $service } $node->services }), 'the service is gone');
	$holder->run('SELECT pg_advisory_unlock(1)');
	my ($out, $err) = $session->result;
	ok($out eq $expected, 'the right answer') or diag $err;
	ok(wait_until(sub { !$node->parallel_workers }), 'no worker is left');
	is($session->run('ROLLBACK; SELECT 1'), '1', 'the session lives');
	$service = $node->wait_service($service);

	# the statement cancelled, within a savepoint; and a worker terminated
	for my $end ('cancelled', 'terminated')
	{
		$holder->run('SELECT pg_advisory_lock(1)');
		$session->run("BEGIN; INSERT INTO w VALUES (0, 'own'); SAVEPOINT a; $before");
		$session->send($statement);
		ok(waits_at_gate, "$way: a worker waits in the middle");
		if ($end eq 'cancelled') { $bystander->run('SELECT pg_cancel_backend(' . $session->backend . ')') }
		# it may be the leader that waits, before workers have started
		else
		{
			ok(wait_until(sub { $bystander->run(q{SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity }
				. q{WHERE backend_type = 'parallel worker'}) > 0 }), 'a worker is there');
		}
		(undef, $err) = $session->result;
		like($err, $end eq 'cancelled' ? qr/canceling statement/ : qr/terminating|connection to parallel worker/,
			"which is $end");
		$holder->run('SELECT pg_advisory_unlock(1)');
		ok(wait_until(sub { !$node->parallel_workers }), 'no worker is left');
		$session->run($way eq 'hold' ? 'ROLLBACK; BEGIN' : 'ROLLBACK TO a');
		$session->run("INSERT INTO w VALUES (1, 'own'); DECLARE d CURSOR FOR SELECT process(id) FROM t ORDER BY k, id");
		like($session->run('FETCH d'), qr/^(?!@{[ $session->backend ]}$)\d+$/, 'the next cursor has its workers');
		$session->run('ROLLBACK');
	}
	$session->close;
}

# While all processes compute the rows of a cursor, of which the leader has stored some, and while another sort reads
# what is stored: the service killed, and the statement cancelled.
restart;
my %above = (
	storing => "SELECT gate(id, 40000), pad FROM ($numbered) s WHERE n > 0",
	stored => "SELECT id, pad FROM ($numbered) s ORDER BY leader_gate(n::int, 40000)");
for my $case (map { my $what = $_; map { [ $what, $_ ] } 'killed', 'cancelled' } sort keys %above)
{
	my ($what, $loss) = @$case;
	my $session = $node->session;
	my $statement = "DECLARE c CURSOR FOR $above{$what}";

	like($node->safe_psql('postgres', "EXPLAIN (COSTS off) $statement"),
		$what eq 'stored' ? qr/GpuSort\).*leader_gate.*GpuSortExchange/s : qr/GpuSortExchange/, "$what: by all processes");
	$holder->run('SELECT pg_advisory_lock(1)');
	$session->run("BEGIN; $statement");
	$session->send('FETCH ALL FROM c');
	ok(waits_at_gate, 'a process waits above the sort');
	is(scalar $node->parallel_workers, 0, 'workers have ended') if $what eq 'stored';
	if ($loss eq 'killed')
	{
		kill 'KILL', $service;
		ok(wait_until(sub { !grep { $_ == $service } $node->services }), 'the service is gone');
	}
	else
	{
		$bystander->run('SELECT pg_cancel_backend(' . $session->backend . ')');
	}
	$holder->run('SELECT pg_advisory_unlock(1)');
	my ($out, $err) = $session->result;
	ok($out eq $expected, 'killed: the right answer') or diag $err if $loss eq 'killed';
	like($err, qr/canceling statement/, 'cancelled') if $loss eq 'cancelled';
	ok(wait_until(sub { !$node->parallel_workers }), 'no worker is left');
	is($session->run('ROLLBACK; SELECT 1'), '1', 'the session lives');
	$service = $node->wait_service($service) if $loss eq 'killed';
	$session->close;
}

# The protocol's fetches: Execute with a number of rows.
{
	package Protocol;

	sub new
	{
		my ($class, $node) = @_;
		my $socket = IO::Socket::UNIX->new($node->host . '/.s.PGSQL.' . $node->port) or die $!;
		my $self = bless { socket => $socket, error => '' }, $class;

		$self->send('', pack('N', 196608) . "user\0postgres\0database\0postgres\0\0");
		$self->answer;
		return $self;
	}

	sub send
	{
		my ($self, $kind, $body) = @_;
		$self->{socket}->syswrite($kind . pack('N', length($body) + 4) . $body) or die $!;
		return;
	}

	sub bytes
	{
		my ($self, $count) = @_;
		my $bytes = '';

		$self->{socket}->read($bytes, $count) == $count or die 'the connection is gone' if $count > 0;
		return $bytes;
	}

	# Rows, and 'C' or 's', as all have come or there may be more, until the server is ready.
	sub answer
	{
		my ($self) = @_;
		my (@rows, $end);

		$self->{error} = '';
		while (1)
		{
			my $kind = $self->bytes(1);
			my $body = $self->bytes(unpack('N', $self->bytes(4)) - 4);

			push @rows, join '|', unpack('x2 (N/a)*', $body) if $kind eq 'D';
			$end = $kind if $kind eq 'C' || $kind eq 's';
			$self->{error} = $body if $kind eq 'E';
			return (\@rows, $end) if $kind eq 'Z';
		}
	}

	sub simple
	{
		my ($self, $sql) = @_;
		$self->send('Q', "$sql\0");
		return $self->answer;
	}

	sub open
	{
		my ($self, $query) = @_;
		$self->send('P', "\0$query\0\0\0");
		$self->send('B', "p\0\0" . pack('n3', 0, 0, 0));
		return;
	}

	sub fetch
	{
		my ($self, $rows) = @_;
		$self->send('E', "p\0" . pack('N', $rows));
		$self->send('S', '');
		return $self->answer;
	}
}

restart;
my $client = Protocol->new($node);
my @right = split /\n/, $expected;
my @between = ('', 'INSERT INTO w VALUES (2, \'between\')', 'SAVEPOINT a; CREATE TEMP TABLE x (a int); ROLLBACK TO a');
# with parallel_output what all processes form for a client that takes all rows is planned
for my $way (map { my $output = $_; map { [ $output, $_ ] } @between } 'off', 'on')
{
	my ($output, $between) = @$way;
	my (@rows, @processes);

	$client->simple("SET gpusort.parallel_output = $output");

	$client->simple('BEGIN');
	$client->open('SELECT id, pad, process(id) FROM t ORDER BY k, id');
	while (1)
	{
		my ($some, $end) = $client->fetch(@rows ? 7001 : 1);

		push @rows, map { s/\|(\d+)$//r } @$some;
		push @processes, map { /\|(\d+)$/ } @$some;
		is($client->{error}, '', 'no error') if $client->{error};
		is(scalar $node->parallel_workers, 0, 'workers have ended when the first row has come') if @rows == 1;
		last if $end eq 'C' || $client->{error};
		$client->simple($between) if $between && @rows == 1;
	}
	ok("@rows" eq "@right", "Execute with a number of rows, parallel_output $output"
		. ($between ? ", and between two: $between" : ''));
	my ($own) = $client->simple('SELECT pg_backend_pid()');
	my $by_leader = grep { $_ == $own->[0] } @processes;
	# with parallel_output the leader takes rows in, too, and may have taken in all when workers come
	is($by_leader, 0, 'whose rows workers have taken in') if $output eq 'off';
	$client->simple('COMMIT');
}

# A plan for all rows at once was not made for storing them: who fetches some gets what the leader computes.
$client->simple('SET gpusort.parallel_output = on');
$client->simple('BEGIN');
$client->open('SELECT process(id), row_number() OVER (ORDER BY k, id) FROM t');
my ($leader) = $client->simple('SELECT pg_backend_pid()');
my ($first) = $client->fetch(3);
is("@$first", join(' ', map { "$leader->[0]|$_" } 1 .. 3), 'first rows of a window are computed by the leader');
$client->simple('COMMIT');

# The node itself starts workers where all processes could have formed rows; they end before the first one comes, which
# is asked for while they wait.
my $gated_rows = 'SELECT id, pad FROM t WHERE gate(id, 40000) > 0 ORDER BY k, id';
# a row that is longer than a chunk of the staging pool
my @fetched = ($gated_rows, "$gated_rows, CASE WHEN id = 30000 THEN repeat(pad, 500000) END");
for my $query (@fetched)
{
	my ($plan) = $client->simple("EXPLAIN (COSTS off) $query");
	like("@$plan", qr/GpuSortExchange.*GpuSortOutput/, 'rows that all processes could form');
	$client->simple('SET gpusort.enable = off');
	my ($native) = $client->simple($query);
	$client->simple('SET gpusort.enable = on');
	for my $loss ('none', 'service', 'refused', 'cancel', 'later')
	{
		my (@rows, $end);

		$client->simple('SET gpusort.allowed = off') if $loss eq 'refused';
		$holder->run('SELECT pg_advisory_lock(1)');
		$client->simple('BEGIN');
		$client->open($query);
		$client->send('E', "p\0" . pack('N', 1000));
		$client->send('S', '');
		ok(waits_at_gate, "$loss: a process waits in the middle");
		ok(wait_until(sub { scalar $node->parallel_workers > 0 }), 'workers are there') if $loss ne 'refused';
		if ($loss eq 'service')
		{
			kill 'KILL', $service;
			ok(wait_until(sub { !grep { $_ == $service } $node->services }), 'the service is gone');
		}
		$bystander->run(q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE state = 'active'
			AND backend_type = 'client backend' AND query LIKE 'SELECT id, pad%'}) if $loss eq 'cancel';
		$holder->run('SELECT pg_advisory_unlock(1)');
		do
		{
			(my $some, $end) = defined $end ? $client->fetch(7001) : $client->answer;
			push @rows, @$some;
			is(scalar $node->parallel_workers, 0, 'workers have ended when the first row has come') if @rows == 1000;
			if ($loss eq 'later' && @rows == 1000)
			{
				kill 'KILL', $service;
				$service = $node->wait_service($service);
			}
		} while (defined $end && $end eq 's');
		if ($loss eq 'cancel')
		{
			like($client->{error}, qr/57014/, 'cancelled');
		}
		elsif ($loss eq 'later' && $client->{error})
		{
			like($client->{error}, qr/58000/, 'rows are lost');
		}
		else
		{
			ok("@rows" eq "@$native", "$loss: the right rows") or diag @rows . $client->{error};
		}
		ok(wait_until(sub { !$node->parallel_workers }), 'no worker is left');
		$client->simple('ROLLBACK');
		$client->simple('SELECT pg_advisory_unlock_all()');
		$client->simple('RESET gpusort.allowed');
		$service = $node->wait_service($service) if $loss eq 'service';
	}
}

# Where no worker can be had the leader computes a row when it is asked for one, as PostgreSQL does, and stores none.
my %computed = (
	window => "SELECT 1 / (60000 - n) AS one, id, pad FROM ($numbered) s",
	'window that rows near a row decide' => 'SELECT 1 / (60000 - n) AS one, id, pad FROM (SELECT id, pad, '
		. 'row_number() OVER w AS n, lag(id) OVER w, lead(pad, 2) OVER w FROM t WINDOW w AS (ORDER BY k, id)) s',
	groups => 'SELECT 1 / (30006 - k) AS one, count(DISTINCT id), max(pad) FROM t GROUP BY k',
	join => 'SELECT 1 / (30006 - k) AS one, count(DISTINCT a.id) FROM t a JOIN t b USING (k) GROUP BY k');
my ($taker, $poor) = map { $node->session } 1 .. 2;
$holder->run('SELECT pg_advisory_lock(1)');
$taker->run('SET gpusort.enable = off');
$taker->send('SELECT count(*) FROM t WHERE gate(id, 40000) > 0');
ok(waits_at_gate, 'a statement has a worker');
my $by_sorts = 'SET enable_hashjoin = off; SET enable_nestloop = off; SET enable_hashagg = off';
$poor->run("SET max_parallel_workers = 1; $by_sorts");
for my $name (sort keys %computed)
{
	my $declare = "CURSOR FOR $computed{$name}";

	like($node->safe_psql('postgres', "$by_sorts; EXPLAIN (COSTS off) DECLARE g $declare"), qr/GpuSortExchange/,
		"$name: all processes would compute it");
	$poor->run("BEGIN; SET LOCAL gpusort.enable = off; DECLARE n $declare; RESET gpusort.enable; DECLARE g $declare");
	for my $rows (1, 2000, 20000)
	{
		my $right = $poor->run("FETCH $rows FROM n");
		my $given = $poor->run("FETCH $rows FROM g");

		ok($given eq $right && $right ne '', "$name: $rows rows without workers");
	}
	$poor->send('FETCH ALL FROM g');
	like(($poor->result)[1], qr/division by zero/, 'the last one is an error');
	$poor->run('ROLLBACK');
}
$holder->run('SELECT pg_advisory_unlock(1)');
(undef) = $taker->result;
$_->close for $taker, $poor;

# who fetches need not have the rights of who has opened the cursor, which workers would want
$node->safe_psql('postgres', q{
	CREATE ROLE reader;
	CREATE FUNCTION open() RETURNS refcursor LANGUAGE plpgsql SECURITY DEFINER AS $$
	DECLARE
		c refcursor := 'c';
	BEGIN
		OPEN c FOR SELECT id, pad FROM t ORDER BY k, id;
		RETURN c;
	END $$;
});
ok($node->safe_psql('postgres', "BEGIN; SET ROLE reader; SELECT open() \\g /dev/null\nFETCH ALL FROM c") eq $expected,
	'a cursor of another user');
ok($node->safe_psql('postgres', 'BEGIN; DECLARE c CURSOR FOR SELECT id, pad FROM t ORDER BY k, id; '
		. 'SET SESSION AUTHORIZATION reader; FETCH ALL FROM c') eq $expected, 'a cursor of a user before');

# psql's
is($node->safe_psql('postgres', "\\set FETCH_COUNT 1000\nSELECT id, pad FROM t ORDER BY k, id"), $expected,
	'FETCH_COUNT');

# a foreign table that rows are inserted into, and one that is read by cursors, in another session of the same server
if ($node->safe_psql('postgres', q{SELECT count(*) FROM pg_available_extensions WHERE name = 'postgres_fdw'}))
{
	$node->safe_psql('postgres', sprintf q{
		CREATE EXTENSION postgres_fdw;
		CREATE SERVER own FOREIGN DATA WRAPPER postgres_fdw
			OPTIONS (host '%s', port '%s', dbname 'postgres', batch_size '100');
		CREATE USER MAPPING FOR postgres SERVER own;
		CREATE FOREIGN TABLE w_foreign (id int, pad text) SERVER own OPTIONS (table_name 'w');
		CREATE FOREIGN TABLE t_foreign (id int, k int, pad text) SERVER own OPTIONS (table_name 't');
	}, $node->host, $node->port);
	$node->safe_psql('postgres', 'TRUNCATE w; INSERT INTO w_foreign SELECT id, pad FROM t ORDER BY k, id');
	ok($node->safe_psql('postgres', 'SELECT id, pad FROM w ORDER BY ctid') eq $expected, 'INSERT into a foreign table');
	ok($node->safe_psql('postgres', 'SELECT id, pad FROM t_foreign ORDER BY k, id') eq $expected, 'a foreign table');
	$node->safe_psql('postgres', 'TRUNCATE w; INSERT INTO w SELECT id, pad FROM t_foreign ORDER BY k, id');
	ok($node->safe_psql('postgres', 'SELECT id, pad FROM w ORDER BY ctid') eq $expected, 'INSERT from a foreign table');
}

# serializable transactions that conflict do so with workers, too
my ($one, $two) = map { $node->session } 1 .. 2;
for ($one, $two)
{
	$_->run('BEGIN ISOLATION LEVEL SERIALIZABLE');
	$_->run('DECLARE c CURSOR FOR SELECT id FROM t ORDER BY k, id');
	$_->run('FETCH 10 FROM c');
}
$_->run("INSERT INTO t VALUES (0, 0, 'one of two')") for $one, $two;
$one->run('COMMIT');
$two->send('COMMIT');
like(($two->result)[1], qr/could not serialize/, 'a serialization failure');
is($bystander->run(q{SELECT count(*) FROM t WHERE id = 0}), '1', 'one row of two');

unlike($node->log_text, qr/PANIC|terminating any other active server processes|leak|TRAP/,
	'the server lived through it all');
$_->close for $one, $two, $holder, $bystander;
$node->stop;
done_testing;
