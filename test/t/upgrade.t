# Dumps, and pg_upgrade from an older version of PostgreSQL that preloads gpusort: what users have
# comes through, and sorts are gpusort's on the other side.
#
# pg_upgrade wants two installations of PostgreSQL that both have gpusort: GPUSORT_OLD_PG_CONFIG names
# the older one (script/test upgrade has both).
use strict;
use warnings;

use GpuSortNode;
use PostgreSQL::Test::Utils;
use Test::More;

my @initdb = (extra => [qw(--encoding UTF8 --locale C --data-checksums)]);

# What a dump has, without what differs from dump to dump.
sub dump_of
{
	my ($node, $database) = @_;
	my ($out, $err) = run_command([ $node->installed_command('pg_dump'), '-d', $node->connstr($database) ]);

	$out =~ s/^\\(?:un)?restrict .*\n//mg;
	return $err eq '' ? $out : $err;
}

# The extension's objects, and what they look like.
sub extension_of
{
	my ($node, $database) = @_;
	return $node->safe_psql($database, join "\n", '\dx gpusort', '\dx+ gpusort', '\df+ gpusort*', '\dp gpusort*',
		map { "\\d+ gpusort_$_" } qw(devices jobs service stats));
}

# What the users of a server have, which is to be the same on another: settings, rights, rows, views.
sub make_objects
{
	my ($node) = @_;
	$node->safe_psql('postgres', q{
		CREATE ROLE alice LOGIN;
		CREATE DATABASE sorts;
		ALTER DATABASE sorts SET gpusort.row_cost = 0.01;
		ALTER ROLE alice SET gpusort.enable = off;
		GRANT SET ON PARAMETER gpusort.log_decisions TO alice;
	});
	$node->safe_psql('sorts', q{
		CREATE EXTENSION gpusort VERSION '0.1.0';
		GRANT EXECUTE ON FUNCTION gpusort_stats_reset() TO alice;
		CREATE VIEW monitor AS SELECT name, memory_used FROM gpusort_devices;
		CREATE TABLE t AS SELECT i AS id, (i * 7919) % 10007 AS k, md5((i % 4999)::text) AS s, i::numeric / 7 AS n
			FROM generate_series(1, 30000) i;
		CREATE INDEX t_s_k ON t (s, k);
		CREATE VIEW sorted AS SELECT id, k, s FROM t ORDER BY s DESC, k, id;
		CREATE MATERIALIZED VIEW kept AS SELECT * FROM sorted LIMIT 1000;
		ANALYZE;
	});
}

my $digest = 'SELECT md5(string_agg(v::text, E\'\n\')) FROM sorted v';
my @facts = (
	'the rows of a sort' => "SET gpusort.force = on; $digest",
	'and of PostgreSQL\'s' => "SET gpusort.enable = off; $digest",
	'the table' => "SET gpusort.enable = off; SELECT md5(string_agg(t::text, E'\n' ORDER BY id)) FROM t",
	'the materialized view' => 'SELECT count(*), min(s), max(s) FROM kept',
	'an index gives the order' => "SET enable_seqscan = off; SET enable_bitmapscan = off; "
		. "SELECT md5(string_agg(v::text, '')) FROM (SELECT s, k FROM t ORDER BY s, k) v",
	'a setting of the database' => 'SHOW gpusort.row_cost',
	'a setting of a role' => q{SELECT rolconfig FROM pg_roles WHERE rolname = 'alice'},
	'the right to a setting' => q{SELECT has_parameter_privilege('alice', 'gpusort.log_decisions', 'SET')},
	'the right to a function' => q{SELECT has_function_privilege('alice', 'gpusort_stats_reset()', 'EXECUTE')},
	'a view on the extension\'s' => q{SELECT count(*) > 0 FROM monitor});

sub facts_of
{
	my ($node) = @_;
	my %found;
	for (my $i = 0; $i < @facts; $i += 2)
	{
		$found{ $facts[$i] } = $node->safe_psql('sorts', $facts[ $i + 1 ]);
	}
	return \%found;
}

sub sorted_by
{
	my ($node) = @_;
	my ($method) = $node->safe_psql('sorts',
		'SET gpusort.force = on; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT * FROM sorted') =~ /Sort Method: (.*)/;
	return $method;
}

sub test_dump
{
	my $node = GpuSortNode->new('dump');
	my $file = PostgreSQL::Test::Utils::tempdir() . '/dump.sql';

	$node->init;
	$node->start;
	$node->wait_service;
	make_objects($node);
	my $facts = facts_of($node);

	$node->safe_psql('postgres', 'CREATE DATABASE updated; CREATE DATABASE fresh; CREATE DATABASE restored');
	$node->safe_psql('updated', q{CREATE EXTENSION gpusort VERSION '0.1.0'; ALTER EXTENSION gpusort UPDATE});
	$node->safe_psql('fresh', 'CREATE EXTENSION gpusort');
	is(extension_of($node, 'updated'), extension_of($node, 'fresh'),
		'an extension that was updated looks like a fresh one');
	is(dump_of($node, 'updated'), dump_of($node, 'fresh'), 'and is dumped like one');
	unlike(dump_of($node, 'updated'), qr/gpusort_(?:stats|jobs|devices|service|version)/, 'by its name alone');

	$node->safe_psql('sorts', 'ALTER EXTENSION gpusort UPDATE');
	my $dump = dump_of($node, 'sorts');
	like($dump, qr/GRANT ALL ON FUNCTION public\.gpusort_stats_reset\(\) TO alice/,
		'rights that were given later are dumped');
	append_to_file($file, $dump);
	command_ok([ $node->installed_command('psql'), '-Xqv', 'ON_ERROR_STOP=1', '-f', $file, '-d',
		$node->connstr('restored') ], 'a dump is restored');
	is(dump_of($node, 'restored'), $dump, 'what was restored is dumped alike');
	$node->safe_psql('postgres', 'ALTER DATABASE sorts RENAME TO before; ALTER DATABASE restored RENAME TO sorts; '
		. 'ALTER DATABASE sorts SET gpusort.row_cost = 0.01');
	is_deeply(facts_of($node), $facts, 'and is what it was');
	$node->stop;
}

sub test_pg_upgrade
{
	my ($old_config) = @_;
	chomp(my $old_bin = `$old_config --bindir`);
	chomp(my $new_bin = `@{[ $ENV{PG_CONFIG} || 'pg_config' ]} --bindir`);
	my $old = GpuSortNode->new('old', install_path => $old_bin =~ s{/bin$}{}r);
	my $new = GpuSortNode->new('new');
	my $work = PostgreSQL::Test::Utils::tempdir();

	$old->init(@initdb, conf => [ 'gpusort.row_cost = 0.02', 'gpusort.staging_memory = 32MB' ]);
	$old->start;
	$old->wait_service;
	note $old->safe_psql('postgres', 'SELECT version()');
	make_objects($old);
	my $facts = facts_of($old);
	is(sorted_by($old), 'cpu radix', 'the older server sorts by gpusort') if $engine eq 'host';
	$old->stop;

	$new->init(@initdb, conf => [ 'gpusort.row_cost = 0.02', 'gpusort.staging_memory = 32MB' ]);
	my @upgrade = ($new->installed_command('pg_upgrade'), '--no-sync', '-d', $old->data_dir, '-D', $new->data_dir, '-b',
		$old_bin, '-B', $new_bin,
		'-s', $new->host, '-p', $old->port, '-P', $new->port, '-U', 'postgres');
	chdir $work or die "$work: $!";
	for my $options ([ '--check' ], [])
	{
		my ($out, $err) = ('', '');
		my $done = IPC::Run::run([ @upgrade, @$options ], '<', \undef, '>', \$out, '2>', \$err);
		ok($done, "pg_upgrade @$options") or diag($out, $err,
			map { slurp_file($_) } glob($new->data_dir . '/pg_upgrade_output.d/*/log/*.log'));
	}
	is($new->processes, 0, 'no process of gpusort is left of it');
	is($old->processes, 0, 'nor of the older server');

	$new->start;
	$new->wait_service;
	note $new->safe_psql('postgres', 'SELECT version()');
	is($new->safe_psql('sorts', q{SELECT extversion FROM pg_extension WHERE extname = 'gpusort'}), '0.1.0',
		'the extension is the one that was there');
	$new->safe_psql('sorts', 'ALTER EXTENSION gpusort UPDATE; ANALYZE');
	$new->safe_psql('sorts', 'REVOKE EXECUTE ON FUNCTION gpusort_stats_reset() FROM alice');
	$new->safe_psql('postgres', 'CREATE DATABASE fresh');
	$new->safe_psql('fresh', 'CREATE EXTENSION gpusort');
	is(extension_of($new, 'sorts'), extension_of($new, 'fresh'), 'updated it looks like a fresh one');
	$new->safe_psql('sorts', 'GRANT EXECUTE ON FUNCTION gpusort_stats_reset() TO alice');
	is_deeply(facts_of($new), $facts, 'all is what it was');
	is(sorted_by($new), 'cpu radix', 'the newer server sorts by gpusort') if $engine eq 'host';
	is($new->safe_psql('sorts', 'SELECT state FROM gpusort_service'), 'ready', 'the view of the newest version');
	$new->stop;
}

subtest 'dump' => \&test_dump;
subtest 'pg_upgrade' => sub {
	my $old_config = $ENV{GPUSORT_OLD_PG_CONFIG};
	plan skip_all => 'GPUSORT_OLD_PG_CONFIG names no older PostgreSQL: script/test upgrade has one' unless $old_config;
	test_pg_upgrade($old_config);
};
done_testing();
