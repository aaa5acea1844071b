# Who may what: an unprivileged user, what an administrator has decided for him, and functions that
# anybody may call in a server that does not preload gpusort.
use strict;
use warnings;

use GpuSortNode;
use Test::More;

my $node = GpuSortNode->new('main');
$node->init;
$node->start;
$node->wait_service;
$node->safe_psql('postgres', q{
	CREATE TABLE t AS SELECT i AS id, (i * 7919) % 30011 AS k FROM generate_series(1, 30000) i;
	ANALYZE t;
	CREATE ROLE alice LOGIN;
	CREATE ROLE bob LOGIN;
	GRANT SELECT ON t TO PUBLIC;
	CREATE DATABASE without;
	ALTER DATABASE without SET gpusort.allowed = off;
});
my @alice = (extra_params => [qw(-U alice)]);
my @bob = (extra_params => [qw(-U bob)]);

# What a statement ends with: the first error or warning, or nothing.
sub complaint
{
	my ($database, $sql, @params) = @_;
	my (undef, undef, $err) = $node->psql($database, $sql, @params);
	return $err =~ /((?:ERROR|WARNING|FATAL):.*)/ ? $1 : '';
}

# gpusort.allowed is not the user's
my $denied = qr/permission denied to set parameter/;
is($node->method(@alice), 'radix', 'a user sorts with gpusort');
like(complaint('postgres', "SET gpusort.allowed = $_", @alice), $denied, "SET gpusort.allowed = $_ is not for users")
	for 'on', 'off';
like(complaint('postgres', 'SET gpusort.log_decisions = on', @alice), $denied, 'nor is gpusort.log_decisions');
like(complaint('postgres', "ALTER ROLE alice SET $_", @alice), $denied, "nor ALTER ROLE ... SET $_")
	for 'gpusort.allowed = on', 'gpusort.log_decisions = on';
like(complaint('postgres', 'CREATE FUNCTION pg_temp.f() RETURNS int LANGUAGE sql SET gpusort.allowed = on AS $$ '
	. 'SELECT 1 $$', @alice), $denied, 'nor a function that sets it');

$node->safe_psql('postgres', 'ALTER ROLE alice SET gpusort.allowed = off');
is($node->method(@alice), 'native', 'an administrator has turned it off for a role: its plans are as without gpusort');
is($node->method(@bob), 'radix', 'but not those of another');
my $widen = 'SET gpusort.enable = on; SET gpusort.force = on; SET gpusort.min_rows = 0; '
	. 'SET gpusort.setup_cost = 0; SET gpusort.row_cost = 0;';
my $explain = 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM t ORDER BY k';
unlike($node->safe_psql('postgres', "$widen $explain", @alice), qr/GpuSort/, 'whatever the user sets');
unlike($node->safe_psql('postgres', "RESET ALL; DISCARD ALL; $widen $explain", @alice), qr/GpuSort/, 'and resets');
{
	local $ENV{PGOPTIONS} = '-c gpusort.allowed=on';
	# psql ends before it would read a statement
	like(complaint('postgres', undef, extra_params => [qw(-U alice -c), 'SELECT 1']), $denied,
		'nor as an option of the connection');
}
unlike($node->safe_psql('without', "$widen EXPLAIN SELECT i FROM generate_series(1, 1000) i ORDER BY 1", @bob),
	qr/GpuSort/, 'a database without gpusort');
$node->safe_psql('postgres', 'ALTER ROLE alice RESET gpusort.allowed');

# a plan that is there already
my $session = $node->session;
$session->run('SET plan_cache_mode = force_generic_plan; SET gpusort.force = on; '
	. 'PREPARE q AS SELECT * FROM t ORDER BY k');
like($session->run('EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) EXECUTE q'), qr/radix/, 'a prepared sort');
$session->run('BEGIN; DECLARE c CURSOR FOR SELECT * FROM t ORDER BY k');
$session->run('SET gpusort.allowed = off; SET gpusort.log_decisions = on');
my $plan = $session->run('EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) EXECUTE q');
like($plan, qr/Sort Method: quicksort|external/, 'is PostgreSQL\'s where gpusort.allowed has been turned off since');
unlike($plan, qr/GpuSort/, 'planned again');
my $from = length $node->log_text;
$session->run('FETCH 1 FROM c');
like(substr($node->log_text, $from), qr/falling back to tuplesort: gpusort.allowed is off/,
	'a cursor that is open falls back, and the log names the setting');
$session->run('COMMIT; RESET gpusort.allowed; RESET gpusort.log_decisions');
like($session->run('EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) EXECUTE q'), qr/radix/, 'until it is on again');
$session->close;

# what an administrator may give away
$node->safe_psql('postgres', 'GRANT SET ON PARAMETER gpusort.log_decisions TO bob');
is(complaint('postgres', 'SET gpusort.log_decisions = on', @bob), '', 'GRANT SET ON PARAMETER');
like(complaint('postgres', 'SET gpusort.log_decisions = on', @alice), $denied, 'to one user and no other');

# one session does not take what is there for all
my $greedy = $node->session;
$greedy->run('SET gpusort.force = on; BEGIN');
$greedy->run("DECLARE c$_ NO SCROLL CURSOR FOR SELECT * FROM t ORDER BY k; MOVE 1 IN c$_") for 1 .. 32;
cmp_ok($greedy->run('SELECT count(*) FROM pg_cursors'), '>=', 32, 'a session with 32 cursors');
is($node->method(@bob), 'radix', 'leaves room for others');
$greedy->close;

# a server that does not preload it
my $plain = GpuSortNode->new('plain');
$plain->init(conf => ["shared_preload_libraries = ''"]);
$plain->start;
$plain->safe_psql('postgres', q{
	CREATE EXTENSION gpusort;
	CREATE TABLE t AS SELECT i AS id, (i * 7919) % 30011 AS k FROM generate_series(1, 30000) i;
	ANALYZE t;
	CREATE ROLE alice LOGIN;
	CREATE ROLE monitor LOGIN IN ROLE pg_monitor;
	GRANT SELECT ON t TO PUBLIC;
});
$node = $plain;
like(complaint('postgres', q{LOAD 'gpusort'}, @alice), qr/access to library "gpusort" is not allowed/,
	'a user may not LOAD it');
is($plain->safe_psql('postgres', "SELECT gpusort_version() <> ''; $widen EXPLAIN (COSTS OFF) SELECT * FROM t "
	. "ORDER BY k", @alice), "t\nSort\n  Sort Key: k\n  ->  Seq Scan on t",
   'gpusort_version() is for everybody, and plans stay as they were');
is(scalar $plain->services, 0, 'and no service starts');
my (undef, $out, $err) = $plain->psql('postgres', 'SELECT * FROM gpusort_devices', extra_params => [qw(-U monitor)]);
like($err, qr/WARNING:.*was loaded by a function call/, 'nor for one who may read gpusort_devices');
is($out, '', 'who is told that there is none');
is($plain->safe_psql('postgres', 'SELECT sorts FROM gpusort_stats', extra_params => [qw(-U monitor)]), '0',
	'and reads statistics');
is(scalar $plain->services + scalar $plain->supervisors, 0, 'no process has come of it');
like(complaint('postgres', "$_; SELECT gpusort_version()", @alice), qr/permission denied/,
	"$_ before it is loaded comes to nothing")
  for 'SET gpusort.allowed = on', 'SET gpusort.log_decisions = on';
like(complaint('postgres', 'ALTER ROLE alice SET gpusort.allowed = on', @alice), qr/permission denied/,
	'nor can it be kept for later');

($out, $err) = ($plain->psql('postgres',
	"LOAD 'gpusort'; SET gpusort.allowed = off; $widen $explain; SELECT * FROM gpusort_devices"))[ 1, 2 ];
unlike($out, qr/GpuSort/, 'LOAD by a superuser, with gpusort.allowed off');
like($err, qr/WARNING:.*gpusort\.allowed is off/, 'and gpusort_devices');
is(scalar $plain->services + scalar $plain->supervisors, 0, 'start no service either');

# and with workers, which load what their leader has loaded
my $parallel = 'SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; '
	. 'SET min_parallel_table_scan_size = 0;';
like($plain->safe_psql('postgres',
	"SELECT gpusort_version(); $parallel $widen EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT count(*) "
	. "FROM t", @alice),
	 qr/Workers Launched: 2/, 'parallel queries of a session that has called it');
# a sort waits for two seconds for the service that it starts
ok(wait_until(sub {
	$plan = $plain->safe_psql('postgres', "LOAD 'gpusort'; SET SESSION AUTHORIZATION alice; "
		. "$parallel $widen EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF) SELECT * FROM t ORDER BY k");
	return $plan =~ /Workers Launched: 2.*radix/s;
}), 'LOAD by a superuser is a decision: parallel sorts of a user') or diag $plan;
ok(wait_until(sub { scalar $plain->services == 1 }), 'with a service');
is($plain->method(@alice), 'native', 'but in that session only');
like($plain->safe_psql('postgres', 'SELECT count(*) > 0 FROM gpusort_devices', extra_params => [qw(-U monitor)]), qr/t/,
	'which can be asked for its devices then');

done_testing;
