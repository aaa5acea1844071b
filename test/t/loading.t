# Loading without shared_preload_libraries: by LOAD, by session_preload_libraries, by CREATE
# EXTENSION; one supervisor and one service however many sessions start them.
use strict;
use warnings;

use GpuSortNode;
use IPC::Run;
use Test::More;

my $node = GpuSortNode->new('main');
$node->init(conf => ["shared_preload_libraries = ''"]);
$node->start;
is(scalar $node->services, 0, 'no service without gpusort');
$node->safe_psql('postgres', 'CREATE TABLE t AS SELECT i AS id, (i * 7919) % 30011 AS k '
	. 'FROM generate_series(1, 30000) i; ANALYZE t');
my $sort = q{SELECT md5(string_agg(id::text, ',')) FROM (SELECT * FROM t ORDER BY k, id) s};
my $rows = $node->safe_psql('postgres', $sort);
unlike($node->safe_psql('postgres', 'SET gpusort.force = on; EXPLAIN (COSTS OFF) SELECT * FROM t ORDER BY k'),
	qr/GpuSort/, 'plans are as they were');

# sessions that load it all at once
my @sessions = map { $node->session } 1 .. 8;
$_->send("LOAD 'gpusort'; SET gpusort.force = on; $sort") for @sessions;
is(join(' ', map { ($_->result)[0] } @sessions), join(' ', ($rows) x 8),
	'eight sessions LOAD it at once: right answers');
is($node->method, 'native', 'a session that did not is not concerned');
ok(wait_until(sub { scalar $node->services == 1 }), 'one service was started') or diag $node->log_text;
ok(wait_until(sub { scalar $node->supervisors == 1 }), 'by one supervisor');
for my $session (@sessions[ 0, 7 ])
{
	ok(wait_until(sub { $session->run('EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT * FROM t ORDER BY k')
		=~ /Sort Method: (?:cpu|gpu) radix/ }), 'which sorts');
}
$_->close for @sessions;
is($node->safe_psql('postgres', "LOAD 'gpusort'; LOAD 'gpusort'; SET gpusort.force = on; $sort"), $rows, 'LOAD twice');

# it outlives the sessions, and starts again when it was ended
my ($service) = $node->services;
kill 'KILL', $service;
ok(wait_until(sub { my ($pid) = $node->services; $pid && $pid != $service }), 'a killed service is started again');
ok(wait_until(sub { $node->safe_psql('postgres',
	"LOAD 'gpusort'; SET gpusort.force = on; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT * FROM t "
		. "ORDER BY k") =~ /radix/ }), 'and sorts');

# per role and per database, as an administrator sets it; and for everybody
$node->safe_psql('postgres',
	q{CREATE ROLE sorter LOGIN; GRANT SELECT ON t TO sorter; ALTER ROLE sorter SET session_preload_libraries = 'gpusort'});
is($node->method(extra_params => [qw(-U sorter)]), 'radix', 'session_preload_libraries of a role');
is($node->method, 'native', 'and of nobody else');
$node->safe_psql('postgres', q{ALTER SYSTEM SET session_preload_libraries = 'gpusort'});
$node->reload;
ok(wait_until(sub { $node->method eq 'radix' }), 'session_preload_libraries of the server');
is($node->safe_psql('postgres', "SET gpusort.force = on; $sort", extra_params => [qw(-U sorter)]), $rows,
	'an ordinary user sorts');

# settings before the module is there
is($node->safe_psql('postgres', 'SHOW gpusort.enable'), 'on', 'a setting of the module');
$node->safe_psql('postgres', 'CREATE EXTENSION gpusort');
is($node->safe_psql('postgres', 'SELECT gpusort_version() = extversion FROM pg_extension WHERE extname = \'gpusort\''),
	't', 'the extension');
is($node->safe_psql('postgres', 'SELECT count(*) > 0 FROM gpusort_devices'), 't', 'its views');

# the extension as an older version has made it
my $upgrade = 'DROP EXTENSION gpusort; CREATE EXTENSION gpusort VERSION \'0.1.0\'';
is($node->safe_psql('postgres', "$upgrade; SELECT sorts >= 0 AND stats_reset < now() FROM gpusort_stats"), 't',
	'objects of version 0.1.0 with this module');
my $objects = q{SELECT string_agg(o, ' ' ORDER BY o)
	FROM (SELECT pg_describe_object(classid, objid, 0) || coalesce(pg_get_function_arguments(nullif(objid, 0)), '')
	|| coalesce(obj_description(objid, 'pg_proc'), '')
		|| coalesce((SELECT proacl::text FROM pg_proc p WHERE p.oid = objid), '')
	|| coalesce((SELECT relacl::text || pg_get_viewdef(c.oid) FROM pg_class c WHERE c.oid = objid), '') AS o
	FROM pg_depend WHERE refclassid = 'pg_extension'::regclass AND refobjid = (SELECT oid FROM pg_extension
		WHERE extname = 'gpusort') AND deptype = 'e') s};
my $updated = $node->safe_psql('postgres', "ALTER EXTENSION gpusort UPDATE; $objects");
is($updated, $node->safe_psql('postgres', "DROP EXTENSION gpusort; CREATE EXTENSION gpusort; $objects"),
	'updated they are those of CREATE EXTENSION');
is($node->safe_psql('postgres', 'SELECT queue_time >= 0 FROM gpusort_stats'), 't', 'with their new columns');

# ends with the server
ok($node->stop, 'the server stops');
ok(wait_until(sub { !$node->processes }), 'no process is left');
$node->start;
is($node->safe_psql('postgres', "SET gpusort.force = on; $sort"), $rows, 'after a restart');
ok($node->wait_service, 'the service comes on demand');
ok($node->kill_postmaster, 'nothing outlives a postmaster that is killed');

# no slot for the supervisor: PostgreSQL sorts
my $full = GpuSortNode->new('full');
$full->init(conf => ["shared_preload_libraries = ''", 'max_worker_processes = 0']);
$full->start;
is($full->safe_psql('postgres', q{LOAD 'gpusort'; SET gpusort.force = on; SELECT string_agg(i::text, ',') }
	. q{FROM (SELECT i FROM generate_series(1, 5) i ORDER BY i DESC) s}), '5,4,3,2,1',
   'without a worker slot: the right answer');
is(scalar $full->services, 0, 'and no service');

# single-user mode has no background workers, preloaded or not: PostgreSQL sorts, without advice that does not help
my $alone = GpuSortNode->new('alone');
$alone->init;
my ($out, $err);
my @single = ($alone->installed_command('postgres'), '--single', '-j', '-D', $alone->data_dir, 'postgres');
my $sql = "SET gpusort.force = on;\n\n"
	. "SELECT string_agg(i::text, ',') FROM (SELECT i FROM generate_series(1, 5) i ORDER BY i DESC) s;\n\n";
IPC::Run::run(\@single, '<', \$sql, '>', \$out, '2>', \$err);
like($out, qr/"5,4,3,2,1"/, 'single-user mode: the right answer');
unlike($err, qr/gpusort/, 'without advice that does not help') or diag $err;

done_testing;
