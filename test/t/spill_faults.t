# Sorts in runs, and what goes wrong with them: no space, files that are not what they were, the service and
# backends killed, cancels.  A query ends with an error that says what it is, or with the right rows, and nothing
# is left behind.
use strict;
use warnings;

use GpuSortNode;
use Test::More;
use Time::HiRes qw(sleep time);

plan skip_all => 'the memory that the host engine sorts in' if $engine ne 'host';

my $rows = 250000;
my @conf = ('gpusort.host_memory = 24MB', 'gpusort.force = on', 'work_mem = 256MB',
	'max_worker_processes = 16', 'max_parallel_workers = 8',
			'parallel_setup_cost = 0', 'parallel_tuple_cost = 0', 'min_parallel_table_scan_size = 0', 'gpusort.setup_cost = 0',
				'gpusort.row_cost = 0');

my $node = GpuSortNode->new('main');
$node->init(conf => \@conf);
$node->start;
my $service = $node->wait_service;
$node->safe_psql('postgres', qq{
	CREATE EXTENSION gpusort;
	CREATE TABLE t AS SELECT i AS id, hashint4(i) AS h, i % 9001 AS g, md5(i::text) || md5((-i)::text) AS s
		FROM generate_series(1, $rows) i;
	ANALYZE t;
	-- waits at one row until nobody holds lock 1
	CREATE FUNCTION gate(i int, at int) RETURNS int LANGUAGE plpgsql STABLE PARALLEL SAFE AS \$\$
	BEGIN
		IF i = at THEN
			PERFORM pg_advisory_lock_shared(1);
			PERFORM pg_advisory_unlock_shared(1);
		END IF;
		RETURN i;
	END \$\$;
});

# more than the chunks between the service and a process hold
my $long = 'SELECT id, h, s FROM t UNION ALL SELECT id + 1000000, h, s FROM t';
my $digest = q{SELECT count(*) || ' ' || md5(string_agg(hashtextextended(q::text, 0)::text, ',')) FROM (%s) q};
my $query = sprintf $digest, 'SELECT id, h, s FROM t ORDER BY h, id';
my $window = q{SELECT count(*) || ' ' || sum(hashtextextended(q::text, 0)::numeric) FROM (SELECT g, id, sum(id) }
	. q{OVER (PARTITION BY g ORDER BY id), lag(s) OVER (PARTITION BY g ORDER BY id) FROM t OFFSET 0) q};
my $parallel = 'SET max_parallel_workers_per_gather = 2';
my $session = $node->session;
my $holder = $node->session;
my $right = $session->run("SET gpusort.enable = off; $query");
my $right_window = $session->run("$window; RESET gpusort.enable");

sub files_left
{
	return map { glob "$_/pgsql_tmp/*" } $node->data_dir . '/base', glob $node->data_dir . '/pg_tblspc/*/PG_*';
}

# Descriptors of temporary files that the service has open.
sub open_files
{
	my ($pid) = $node->services;
	return grep { (readlink $_ // '') =~ m{/pgsql_tmp/} } glob "/proc/$pid/fd/*";
}

# What there is between queries: no job, no memory, no file.
sub nothing_left
{
	my ($name) = @_;
	my $state;

	wait_until(sub {
		$state = $node->ask('SELECT (SELECT count(*) FROM gpusort_jobs()), (SELECT sum(memory_used) '
			. 'FROM gpusort_devices())');
		return $state eq '0|0' && !files_left() && !open_files();
	});
	is(join(' ', $state, files_left, open_files), '0|0', "$name: nothing is left");
	return;
}

# The next sort is done by the service, in runs, and right.
sub goes_on
{
	my ($name) = @_;
	my ($runs, $fallbacks) = split /\|/, $node->safe_psql('postgres', 'SELECT runs, fallbacks FROM gpusort_stats()');

	is($session->run("SET gpusort.verify_rows = on; $query"), $right, "$name: the next sort is right");
	my ($runs_after, $fallbacks_after) = split /\|/,
		$node->safe_psql('postgres', 'SELECT runs, fallbacks FROM gpusort_stats()');
	cmp_ok($runs_after - $runs, '>=', 2, "$name: and in runs");
	is($fallbacks_after - $fallbacks, 0, "$name: by the service");
	nothing_left($name);
	return;
}

# A service that follows one that was killed, without its delay: a change of settings does not wait for it.
my $megabytes = 64;
sub new_service
{
	$megabytes++;
	$node->safe_psql('postgres', "ALTER SYSTEM SET gpusort.staging_memory = '${megabytes}MB'");
	$node->reload;
	$service = $node->wait_service_with('staging-memory', $megabytes << 20);
	return;
}

goes_on('before');
is($session->run("$parallel; $window; RESET max_parallel_workers_per_gather"), $right_window, 'in parallel');

# --- space ----------------------------------------------------------------------------------------

for my $settings ('', "$parallel;")
{
	$session->send("SET temp_file_limit = '2MB'; $settings $query; RESET temp_file_limit; "
		. "RESET max_parallel_workers_per_gather");
	my ($out, $err) = $session->result;
	like($err, qr/ERROR:  53400: temporary file size exceeds temp_file_limit/, "temp_file_limit is reached, $settings");
	$session->run('RESET temp_file_limit; RESET max_parallel_workers_per_gather');
	nothing_left('temp_file_limit');
}
goes_on('temp_file_limit');

# a file that the service may not write to; the postmaster ignores SIGXFSZ
is(system('prlimit', "--pid=$service", '--fsize=4194304:'), 0, 'a limit of the size of files');
$session->send($query);
my ($out, $err) = $session->result;
is($out, '', 'no rows');
like($err, qr/ERROR:  [0-9A-Z]{5}: gpusort: could not write a run to a temporary file: File too large/,
	'but what was wrong');
is(system('prlimit', "--pid=$service", '--fsize=unlimited:'), 0, 'no limit');
is(join(' ', $node->services), $service, 'the service lives');
goes_on('the size of files');

# a directory that no file can be made in; of a tablespace PostgreSQL then takes the database's own
my $directory = $node->basedir . '/space';
mkdir $directory or die "$directory: $!";
$node->safe_psql('postgres', "CREATE TABLESPACE space LOCATION '$directory'");
my ($inner) = glob "$directory/PG_*";
chmod 0500, $inner or die "$inner: $!";
is($session->run("SET temp_tablespaces = 'space'; $query"), $right, 'a tablespace that is read only');
rename $inner, "$inner.gone" or die "$inner: $!";
is($session->run($query), $right, 'one that is gone');
my $base = $node->data_dir . '/base/pgsql_tmp';
chmod 0500, $base or die "$base: $!";
for my $settings ('', "$parallel;")
{
	$session->send("$settings $query");
	($out, $err) = $session->result;
	like($err, qr/ERROR:  \w{5}: could not create temporary file "[^"]+": Permission denied/,
		"and no other directory, $settings");
}
chmod 0700, $base or die "$base: $!";
$session->run('RESET max_parallel_workers_per_gather');
chmod 0700, "$inner.gone";
rename "$inner.gone", $inner or die "$inner: $!";
is($session->run("$query; RESET temp_tablespaces"), $right, 'and all is there again');
nothing_left('directories');

# --- files that are not what they were ------------------------------------------------------------

# A bit of what the service has written, while a cursor is open that has read one row.
for my $settings ('', "$parallel;")
{
	$session->run("$settings BEGIN; DECLARE c NO SCROLL CURSOR FOR $long ORDER BY h, id");
	isnt($session->run('FETCH c'), '', "a row of a cursor, $settings");
	my ($flipped, $bytes) = (0, 0);
	for my $link (open_files)
	{
		my $file;
		if (!open $file, '+<', $link)
		{
			# the service closes one that has been read to its end
			next if $!{ENOENT};
			die "$link: $!";
		}
		binmode $file;
		# every 100 kB: what was loaded before is not read again, the end of all keys is
		for (my $at = 50000; $at < -s $file; $at += 100000)
		{
			sysseek $file, $at, 0;
			sysread $file, my $byte, 1;
			sysseek $file, $at, 0;
			$flipped += syswrite $file, chr(ord($byte) ^ 4);
		}
	}
	cmp_ok($flipped, '>', 10, 'bits are flipped');
	$session->send('MOVE ALL IN c');
	($out, $err) = $session->result;
	like($err, qr/ERROR:  XX001: a sorted run was not read back as it was written/, 'no row comes of it, but an error');
	like($err, qr/HINT:/, 'with a hint');
	$session->run('ROLLBACK; RESET max_parallel_workers_per_gather');
	nothing_left('flipped bits');
}
is(join(' ', $node->services), $service, 'the service lives');
goes_on('flipped bits');

# --- the service is killed ------------------------------------------------------------------------

# while rows are put and written: the sort can be repeated
my $gated = sprintf $digest, "SELECT * FROM ($long) l WHERE gate(id, 1200000) > 0 ORDER BY h, id";
my $right_gated = $session->run("SET gpusort.enable = off; " . $gated =~ s/gate\(id, 1200000\)/id/r
	. "; RESET gpusort.enable");
$holder->run('SELECT pg_advisory_lock(1)');
$session->send($gated);
ok(wait_until(sub { scalar(open_files) && $node->ask(
	q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted}) == 1 }),
	'a sort that has written runs waits');
kill 'KILL', $service;
ok(wait_until(sub { !grep { $_ == $service } $node->services }), 'the service is killed');
$holder->run('SELECT pg_advisory_unlock(1)');
($out, $err) = $session->result;
is($out, $right_gated, 'PostgreSQL sorts all of it') or diag $err;
new_service;
goes_on('killed while it writes');

# while it merges
$session->run("BEGIN; DECLARE c NO SCROLL CURSOR FOR $long ORDER BY h, id");
isnt($session->run('FETCH c'), '', 'a row of a cursor');
kill 'KILL', $service;
ok(wait_until(sub { !grep { $_ == $service } $node->services }), 'the service is killed');
$session->send('MOVE ALL IN c');
($out, $err) = $session->result;
like($err, qr/ERROR:.*HINT:/s, 'an error with a hint');
unlike($err, qr/XX000|PANIC|FATAL/, 'not one that should not happen');
$session->run('ROLLBACK');
new_service;
goes_on('killed while it merges');

# at any moment
my ($good, $failed, $wrong) = (0, 0, 0);
my $started = time;
$session->run($query);
my $whole = time - $started;
for my $part (1 .. 5)
{
	my $settings = $part % 2 ? 'RESET max_parallel_workers_per_gather' : $parallel;
	my ($statement, $expected) = $part == 4 ? ($window, $right_window) : ($query, $right);
	$session->run($settings);
	$session->send($statement);
	sleep $whole * $part / 6;
	kill 'KILL', $node->services;
	($out, $err) = $session->result;
	$out eq $expected ? $good++ : $out eq '' && $err =~ /ERROR:.*HINT:/s ? $failed++
		: do { $wrong++; diag "$part: $out $err" };
	new_service;
}
$session->run('RESET max_parallel_workers_per_gather');
is($wrong, 0, "killed at any moment: $good right, $failed failed, none wrong");
goes_on('killed at any moment');

# --- cancels --------------------------------------------------------------------------------------

for ([ 'a sort', '', $query ], [ 'a parallel sort', $parallel, $query ],
	[ 'a window in every process', $parallel, $window ])
{
	my ($name, $settings, $statement) = @$_;
	$session->run($settings) if $settings ne '';
	my ($points, @wrong) = $session->cancel_all_over($statement, 6);
	cmp_ok($points, '>=', 3, "$name is cancelled at $points of 5 points");
	is(join("\n", @wrong), '', "$name: soon, and as it should be");
	nothing_left($name);
}
$session->run('RESET max_parallel_workers_per_gather');
goes_on('cancels');

# --- a backend is killed --------------------------------------------------------------------------

my $victim = $node->session;
$victim->run("BEGIN; DECLARE c NO SCROLL CURSOR FOR $long ORDER BY h, id; MOVE 10 IN c");
ok(scalar(open_files), 'a sort in runs');
kill 'KILL', $victim->backend;
ok($node->wait_crash, 'the server restarts');
$node->poll_query_until('postgres', 'SELECT true');
$node->wait_service;
$_->close for $session, $holder, $victim;
$session = $node->session;
is(join(' ', files_left), '', 'which removes the file');
goes_on('a backend killed');
unlike($node->log_text, qr/PANIC|TRAP|leak|still referenced/, 'without anything that should not be');
$session->close;
$node->stop;

# --- settings -------------------------------------------------------------------------------------

$node->start;
$node->wait_service;
($out, $err) = do { my ($status, $o, $e) = $node->psql('postgres',
	q{ALTER SYSTEM SET gpusort.host_memory = '4MB'}); ($status, $e) };
isnt($out, 0, 'a memory that no sort can be done in');
like($err, qr/invalid value for parameter "gpusort.host_memory": 4.*DETAIL:.*16 MB.*HINT:/s,
	'is refused with what can be done');
$node->append_conf('postgresql.conf', 'gpusort.host_memory = 4MB');
$node->reload;
ok(wait_until(sub { $node->log_text =~ /invalid value for parameter "gpusort.host_memory": 4/ }),
	'also where it is reloaded');
is($node->method, 'radix', 'and the service goes on');
$node->stop;
done_testing();
