# The server stops and restarts, and the administrator's settings change, while sorts run.
use strict;
use warnings;

use GpuSortNode;
use Test::More;

my $node = GpuSortNode->new('main');
$node->init;
$node->start;
my $service = $node->wait_service;
$node->safe_psql('postgres', q{
	CREATE EXTENSION gpusort;
	CREATE TABLE t AS SELECT i AS id, (i * 7919) % 300007 AS k FROM generate_series(1, 250000) i;
	ANALYZE t;
});
my $rows = $node->safe_psql('postgres',
	q{SET gpusort.enable = off; SELECT md5(string_agg(id::text, ',')) FROM (SELECT * FROM t ORDER BY k, id) s});
my $sort = q{SELECT md5(string_agg(id::text, ',')) FROM (SELECT * FROM t ORDER BY k, id) s};

# stop while one sort ingests rows and another emits them
for my $mode ('fast', 'immediate', 'fast')
{
	my $in = $node->session;
	$in->run('SET gpusort.force = on');
	$in->send('SELECT count(*) FROM (SELECT i, pg_sleep(0.01) FROM generate_series(1, 100000) i '
		. 'ORDER BY i DESC OFFSET 0) s');
	my $out = $node->session;
	is(scalar(split /\n/, $out->run('SET gpusort.force = on; BEGIN; DECLARE c CURSOR FOR SELECT id FROM t '
		. 'ORDER BY k, id; FETCH 10 FROM c')), 10, 'a cursor is open');
	ok(wait_until(sub { $node->ask('SELECT count(*) FROM gpusort_jobs') == 2 }), 'two sorts run');
	my $start = time;
	ok($node->stop($mode), "$mode stop");
	in_time($start, 'in time');
	# which the slow sort would not have been by itself, nor a service that waits for its sorts
	is(scalar $node->log_lines(qr/sort service .*(?:was killed|left behind)/), 0, 'the service ended by itself');
	ok(wait_until(sub { !$node->processes }), 'no process is left');
	$node->start;
	ok($node->wait_service, 'the service is back after the restart');
	is(scalar $node->services, 1, 'one of it');
	is($node->safe_psql('postgres', "SET gpusort.force = on; $sort"), $rows, 'and sorts');
	$_->close for $in, $out;
}

# the administrator's settings: another service takes over, running sorts go on
($service) = $node->services;
my $cursor = $node->session;
is($cursor->run('SET gpusort.force = on; BEGIN; DECLARE c CURSOR FOR SELECT id FROM t ORDER BY k, id; '
	. 'FETCH 1 FROM c') ne '', 1, 'a cursor is open');
$node->safe_psql('postgres', q{ALTER SYSTEM SET gpusort.staging_memory = '32MB'});
$node->reload;
my @sessions = map { $node->session } 1 .. 10;
$_->send("SET gpusort.force = on; $sort") for @sessions;
is(join(' ', map { ($_->result)[0] } @sessions), join(' ', ($rows) x 10),
	'ten sorts while the settings change: right answers');
$_->close for @sessions;
is(scalar(split /\n/, $cursor->run('FETCH ALL FROM c')), 249999, 'the cursor goes on');
$cursor->run('COMMIT');
ok(my $next = $node->wait_service($service), 'another service takes over');
ok(wait_until(sub { $node->services == 1 }), 'and is the only one');
is($node->safe_psql('postgres', 'SHOW gpusort.staging_memory'), '32MB', 'with the new setting');
like(command_line($next), qr/--staging-memory\0?=?33554432/, 'in its command line');
is($cursor->run($sort), $rows, 'a session that knew the old service sorts with the new one');

# a setting of each query's own does not restart anything
$node->safe_psql('postgres', q{ALTER SYSTEM SET gpusort.setup_cost = 5});
$node->reload;
ok(wait_until(sub { $node->safe_psql('postgres', 'SHOW gpusort.setup_cost') eq '5' }), 'a cost changes');
is(join(' ', $node->services), $next, 'the service is the same');

# values out of range are refused where they are set
for my $setting (q{devices = 'first, second'}, q{devices = '0,0x'}, q{devices = '-1'}, q{devices = ''},
	q{devices = '0,0'}, 'device_memory = -1',
	q{host_memory = 'much'}, q{host_memory = '15MB'}, q{staging_memory = '1kB'}, q{staging_memory = '100000TB'})
{
	my (undef, undef, $err) = $node->psql('postgres', "ALTER SYSTEM SET gpusort.$setting",
		extra_params => [qw(-v VERBOSITY=sqlstate)]);
	like($err, qr/ERROR:  22023$/, "gpusort.$setting is refused");
}

# a restart of the server keeps the settings
ok($node->stop, 'stop');
$node->start;
$node->wait_service;
is($node->safe_psql('postgres', "SHOW gpusort.staging_memory"), '32MB', 'the settings are kept');
is($node->safe_psql('postgres', "SET gpusort.force = on; $sort"), $rows, 'and sorts go on');
$cursor->close;

done_testing;
