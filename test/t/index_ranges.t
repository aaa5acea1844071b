# Leaf pages of an index that several processes write, and what goes wrong meanwhile: cancels, workers and the leader
# terminated and killed, the service killed, lying and gone, the server stopped at once, rows that no btree takes.
# There is a right index, or an error and none, and no file is left.
use strict;
use warnings;

use GpuSortNode;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'no service with fault points: make gpusortd-faults' unless -x $fault_service;

my $node = GpuSortNode->new('main');
$node->init(
	conf => [ 'wal_level = replica', 'gpusort.index_builds = on', 'gpusort.force = on', 'gpusort.log_decisions = on',
		'gpusort.verify_rows = off',
		'autovacuum = off', 'max_parallel_workers = 8', 'max_worker_processes = 12', 'max_parallel_maintenance_workers = 2',
		'min_parallel_table_scan_size = 0' ]);
$node->own_module(gpusortd => $fault_service);
$node->start;
$node->wait_service;
plan skip_all => 'no amcheck' unless eval { $node->safe_psql('postgres', 'CREATE EXTENSION amcheck'); 1 };
my $check = $node->check_index;
$node->safe_psql('postgres', q{
	CREATE TABLE d AS SELECT i, i * 7919 % 60013 AS k, md5(i::text) AS m FROM generate_series(1, 60000) i;
	CREATE TABLE long AS
		SELECT i, (SELECT string_agg(md5((i * 100 + j)::text), '') FROM generate_series(1, 1 + i % 100) j) AS s
		FROM generate_series(1, 3000) i;
	ALTER TABLE long ALTER s SET STORAGE PLAIN;
	VACUUM ANALYZE;
});
my $build = 'CREATE INDEX ours ON d (m COLLATE "C")';
my $builder;

sub files
{
	my @files = glob $node->data_dir . '/base/*/*';
	return scalar @files;
}

# Nothing of a build runs, and there is no index, and no file but those before.
sub nothing_left
{
	my ($before, $what) = @_;

	ok($node->poll_query_until('postgres', q{
		SELECT (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'parallel worker') = 0}), "$what: no worker");
	is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_class WHERE relname = 'ours'}), 0, "$what: no index");
	ok(wait_until(sub {
		$node->safe_psql('postgres', 'CHECKPOINT');
		return !(() = glob $node->data_dir . '/base/pgsql_tmp/*') && (!defined $before || files() <= $before);
	}), "$what: no file") or diag(files() . ' files, not ' . ($before // 'those'));
	return;
}

# The same build is whole.
sub builds
{
	my ($what) = @_;
	my $from = length $node->log_text;

	is($node->safe_psql('postgres', $build), '', "$what: then the index is built");
	like(substr($node->log_text, $from), qr/index "ours" is loaded in \d\d ranges/, 'in ranges');
	is($node->safe_psql('postgres', 'SELECT ' . sprintf($check, "'ours'") . '; DROP INDEX ours'), '', 'it is good');
	return;
}

sub worker
{
	return $node->ask(q{SELECT min(pid) FROM pg_stat_activity WHERE backend_type = 'parallel worker'});
}

# Begins a build that the service leaves in the middle of its pages, at the seventh range, and waits until there is a
# worker, too.  Returns the service's process id; 0: it does not stop.
sub begin_stopped
{
	my ($sql) = @_;

	# again if its supervisor, whom it does not answer, kills it before
	for (1 .. 10)
	{
		my $service;

		$node->ask('DROP INDEX IF EXISTS ours, invalid');
		$node->wait_service;
		$node->choose_fault('stop_read 7');
		$builder = $node->session;
		$builder->send($sql // $build);
		wait_until(sub {
			($service) = grep { is_stopped($_) } $node->services;
			return $builder->answered || $node->fault_happened && $service && worker();
		});
		return $service if $service && !$builder->answered;
		diag(($builder->result)[1]);
		$node->choose_fault;
	}
	return 0;
}

# Begins a build, and ends it so; what it says is this error.  Returns the service's process id.
sub ends_by
{
	my ($what, $end, $error) = @_;

	for my $try (1 .. 10)
	{
		my $from = length $node->log_text;
		my $service = begin_stopped();

		ok($service, "$what: a build waits");
		$end->();
		my (undef, $said) = $builder->result;
		# the supervisor may be faster
		next if $try < 10 && $said !~ $error && substr($node->log_text, $from) =~ /does not answer: it was killed/;
		like($said, $error, "$what: it ends");
		return $service;
	}
	return;
}

# Waits until PostgreSQL has started its processes again, as the log from there on tells.
sub wait_restart
{
	my ($from) = @_;
	return $node->wait_crash($from) && $node->poll_query_until('postgres', 'SELECT true');
}

builds('nothing wrong');
my $relations = files();

# What ends a build that waits for rows, and is what comes of it
for my $case (
	[ 'cancel', sub { $node->ask('SELECT pg_cancel_backend(' . $builder->backend . ')') },
		qr/canceling statement due to user request/ ],
	[ 'a worker terminated', sub { $node->ask('SELECT pg_terminate_backend(' . (worker() || 'NULL') . ')') },
		qr/terminating background worker|parallel worker|terminating connection/ ],
	[ 'the leader terminated', sub { $node->ask('SELECT pg_terminate_backend(' . $builder->backend . ')') },
		qr/terminating connection due to administrator command/ ])
{
	my ($what, @end) = @$case;

	kill 'CONT', ends_by($what, @end);
	nothing_left($relations, $what);
	builds($what);
}

my $service = begin_stopped();
ok($service, 'the service killed: a build waits');
kill 'KILL', $service;
like(($builder->result)[1], qr/ERROR.*sort/s, 'the service killed: an error');
$node->wait_service($service);
nothing_left($relations, 'the service killed');
builds('the service killed');

# All of the server goes down with a process; its relation's file is left, as PostgreSQL leaves those
# A build that has committed its index before: it is there, and not valid
my $from = length $node->log_text;
$service = begin_stopped('CREATE INDEX CONCURRENTLY invalid ON d (m COLLATE "C")');
ok($service, 'concurrently: a build waits');
kill 'KILL', $builder->backend;
kill 'CONT', $service;
ok(wait_restart($from), 'concurrently: the server starts again');
$node->wait_service;
is($node->safe_psql('postgres', q{SELECT indisvalid FROM pg_index WHERE indexrelid = 'invalid'::regclass}), 'f',
	'the leader killed: the index is invalid');
is($node->safe_psql('postgres', 'REINDEX INDEX CONCURRENTLY invalid; SELECT ' . sprintf($check, q{'invalid'})
	. q{; SELECT indisvalid FROM pg_index WHERE indexrelid = 'invalid'::regclass; DROP INDEX invalid}), "\nt",
	'it can be built anew');
nothing_left(undef, 'concurrently');

my @crashes = ([ 'a worker killed', sub { kill 'KILL', worker() || $builder->backend } ],
	[ 'the leader killed', sub { kill 'KILL', $builder->backend } ],
	[ 'an immediate stop', sub { $node->stop('immediate'); $node->start } ]);
for my $case (@crashes, [ 'an immediate stop of a build that logs nothing', $crashes[-1][1] ])
{
	my ($what, $end) = @$case;

	if ($what =~ /nothing/)
	{
		$node->append_conf('postgresql.conf', "wal_level = minimal\nmax_wal_senders = 0\n");
		$node->restart;
		$node->wait_service;
	}

	$node->safe_psql('postgres', 'CREATE INDEX before ON d (k)');
	my $from = length $node->log_text;
	my $service = begin_stopped();
	ok($service, "$what: a build waits");
	$end->();
	kill 'CONT', $service;
	ok(wait_restart($from), "$what: the server starts again") if $what =~ /killed/;
	$node->wait_service;
	nothing_left(undef, $what);
	is($node->safe_psql('postgres', 'SELECT ' . sprintf($check, "'before'") . '; DROP INDEX before'), '',
		"$what: an index from before is good");
	builds($what);
}
$node->safe_psql('postgres', 'CHECKPOINT');
$relations = files();

# A service that lies, or goes, somewhere among the rows: an error, or PostgreSQL's build where no page was written
for my $fault ('exit_service', 'drop_row', 'skip_chunk', 'send_twice', 'flip_bit', 'swap_rows', 'duplicate_row',
	'message_short')
{
	my ($errors, @bad) = (0);

	for my $at ($fault =~ /^message/ ? (12, 24, 36, 48, 60) : (1, 2, 5, 9, 12))
	{
		my ($service) = $node->services;
		my ($error, $found);

		$node->choose_fault("$fault $at $at");
		$node->psql('postgres', $build, stderr => \$error);
		$errors++ if $error =~ /ERROR/;
		$node->choose_fault(undef);
		wait_until(sub { $node->method eq 'radix' }, 60);
		$found = $node->safe_psql('postgres', q{SELECT count(*) FROM pg_class WHERE relname = 'ours'});
		push @bad, "$at: $error" if $found == ($error =~ /ERROR/ ? 1 : 0);
		push @bad, "$at: a bad index" if $found &&
			$node->psql('postgres', 'SELECT ' . sprintf($check, "'ours'")) != 0;
		$node->safe_psql('postgres', 'DROP INDEX IF EXISTS ours');
	}
	is("@bad", '', "$fault: an error and no index, or a good one");
	cmp_ok($errors, '>', 0, "$fault: errors") if $fault !~ /flip_bit|message_short/;
}
nothing_left($relations, 'a service that lies');

# Errors of a range, in whatever process
my $relations_of_long = files();
my @errors;
for my $setting ('off', 'on')
{
	my $error;

	$node->psql('postgres', "SET gpusort.index_builds = $setting; CREATE INDEX ours ON long (s)", stderr => \$error);
	$error =~ s/^psql:<stdin>:\d+: |^(?:CONTEXT|LOCATION|LOG):.*\n?//mg;
	$error =~ s/\d+ exceeds|\(\d+,\d+\)/.../g;
	$error =~ s/\n+\z//;
	push @errors, $error;
}
like($errors[0], qr/index row size .* maximum/, 'a row that no btree takes');
is($errors[1], $errors[0], 'it is the same error');
nothing_left($relations_of_long, 'a row that no btree takes');

# More pages of a range than there may be in memory: the process waits for its range's place earlier
$node->safe_psql('postgres', q{
	CREATE TABLE same AS SELECT 1 + i / 299000 AS k, i FROM generate_series(1, 300000) i;
	VACUUM ANALYZE same;
});
is($node->safe_psql('postgres', 'SET maintenance_work_mem = 1024; CREATE INDEX ours ON same (k) INCLUDE (i); SELECT '
	. sprintf($check, "'ours'")), '', 'a range of most of the rows');
like($node->log_text, qr/index "ours" is loaded in \d ranges/, 'in ranges');
$node->stop;

done_testing();
