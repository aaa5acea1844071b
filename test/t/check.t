# gpusort_check(), of servers that are not as they should be: each fault is told, with what to do, and
# nothing else; of databases and sessions test/sql/check.sql has them.
use strict;
use warnings;

use GpuSortNode;
use PostgreSQL::Test::Utils qw(slurp_file);
use Test::More;

# What is wrong, as "severity subject: found" lines.
my $unwell = q{SELECT severity || ' ' || subject || ': ' || found FROM gpusort_check() WHERE severity <> 'ok'};
# Of these the machine decides.
my $machine = q{ AND subject NOT IN ('engine', 'driver', 'locked memory', 'host memory', 'parallel workers')};

# --- a server that is as it should be ---------------------------------------------------------

my $node = GpuSortNode->new('main');
$node->init(conf => [ q{shared_preload_libraries = 'pg_stat_statements,gpusort,auto_explain'},
	q{gpusort.staging_memory = '64MB'} ]);
$node->start;
$node->wait_service;
$node->safe_psql('postgres', 'CREATE EXTENSION gpusort');
is($node->safe_psql('postgres', "$unwell$machine"), '', 'where all is well nothing is told');
is($node->safe_psql('postgres', q{SELECT severity || ': ' || found FROM gpusort_check() WHERE subject = 'hooks'}),
	'ok: auto_explain, pg_stat_statements', 'libraries with hooks, before gpusort and after it');
my ($memory) = $node->safe_psql('postgres', 'SELECT memory_total FROM gpusort_devices WHERE engine = \'host\'');
is($node->safe_psql('postgres', 'SELECT memory FROM gpusort_environment()'), $memory,
	'the memory is what the service has found');
is($node->safe_psql('postgres',
	q{SELECT count(*) FROM pg_settings WHERE name = 'huge_pages_status' AND (setting = 'on') <> (SELECT huge_pages }
	. q{FROM gpusort_environment())}), '0', 'huge pages as the server says, where it says so');
my ($locked) = slurp_file('/proc/self/limits') =~ /^Max locked memory\s+(\S+)/m;
is($node->safe_psql('postgres', q{SELECT coalesce(memlock::text, 'unlimited') FROM gpusort_environment()}), $locked,
	'the limit of locked memory');

# --- limits that are too large or too small ----------------------------------------------------

my $mb = int($memory / 1024 / 1024);
$node->append_conf('postgresql.conf',
	"gpusort.host_memory = '${mb}MB'\ngpusort.staging_memory = '16MB'\n"
	. "max_worker_processes = 3\nmax_parallel_workers_per_gather = 2");
$node->restart;
$node->wait_service;
my $told = $node->safe_psql('postgres', $unwell);
like($told, qr/^warning host memory: .* for sorts, 16 MB of gpusort.staging_memory, /m,
	'more memory for sorts than there is');
like($told, qr/^notice staging memory: gpusort.staging_memory of 16 MB$/m, 'little staging memory');
like($told, qr/^warning worker processes: max_worker_processes 3$/m, 'too few processes for the workers of a plan');
is($node->safe_psql('postgres', q{SELECT expected FROM gpusort_check() WHERE subject = 'worker processes'}),
	q{at least 4: gpusort's supervisor, one for logical replication, and the workers of a plan},
	'and how many there should be');
$node->stop;

SKIP:
{
	my $large = GpuSortNode->new('large');
	$large->init(conf => [ q{shared_buffers = '1GB'}, 'huge_pages = off' ]);
	skip 'no memory for shared_buffers of 1 GB', 2 unless $large->start(fail_ok => 1);
	$large->wait_service;
	$large->safe_psql('postgres', 'CREATE EXTENSION gpusort');
	is($large->safe_psql('postgres',
		q{SELECT severity || ': ' || found FROM gpusort_check() WHERE subject = 'huge pages'}),
		'warning: shared_buffers of 1024 MB, not in huge pages', 'large buffers in small pages');
	like($large->safe_psql('postgres', q{SELECT action FROM gpusort_check() WHERE subject = 'huge pages'}),
		qr/^Set sysctl vm\.nr_hugepages=[0-9]+ or more/, 'and how many huge ones they take');
	$large->stop;
}

# --- a server that does not preload it ---------------------------------------------------------

my $plain = GpuSortNode->new('plain');
$plain->init(conf => [ q{shared_preload_libraries = ''}, 'auto_explain.log_min_duration = -1' ]);
$plain->start;
$plain->safe_psql('postgres', 'CREATE EXTENSION gpusort; CREATE ROLE alice LOGIN');
for my $user ('alice', $plain->safe_psql('postgres', 'SELECT current_user'))
{
	$told = $plain->safe_psql('postgres', "$unwell$machine", extra_params => [ '-U', $user ]);
	is($told, "warning preloading: only this session has loaded gpusort\nnotice service: none",
		"gpusort is not preloaded, as $user is told");
}
is(scalar $plain->services, 0, 'who asks starts no service');
$plain->stop;

# --- a service that is not there, and another build --------------------------------------------

# The extension's functions are of the installed module: here is one of the node's own.
my $own = GpuSortNode->new('own');
$own->init;
my $directory = $own->own_module;
chomp(my $share = `@{[ $ENV{PG_CONFIG} || 'pg_config' ]} --sharedir`);
my ($version) = slurp_file("$share/extension/gpusort.control") =~ /^default_version = '(.*)'/m;
my ($function) =
	slurp_file("$share/extension/gpusort--$version.sql") =~ /^(CREATE FUNCTION gpusort_environment\(.*?;)/ms;
$function =~ s{MODULE_PATHNAME}{$directory/gpusort};
$own->start;
my $service = $own->wait_service;
$own->safe_psql('postgres', $function);
is($own->safe_psql('postgres', 'SELECT state, replaced FROM gpusort_environment()'), 'ready|f',
	'a server with a module of its own');
my $module = slurp_file("$directory/gpusort.so");
rename "$directory/gpusort.so", "$directory/gpusort.old" or die $!;
open my $file, '>:raw', "$directory/gpusort.so" or die $!;
print $file $module;
close $file;
# the session that asks is one that was there before: a new one has the server's, too
is($own->safe_psql('postgres', 'SELECT replaced FROM gpusort_environment()'), 't', 'that was replaced meanwhile');
rename "$directory/gpusort.old", "$directory/gpusort.so" or die $!;
is($own->safe_psql('postgres', 'SELECT replaced FROM gpusort_environment()'), 'f', 'and put back');

rename "$directory/gpusortd", "$directory/gpusortd.old" or die $!;
sub put_program
{
	my ($text) = @_;
	open my $program, '>', "$directory/gpusortd" or die $!;
	print $program $text;
	close $program;
	chmod 0755, "$directory/gpusortd";
	return;
}
put_program("#!/bin/sh\nexit 7\n");
kill 'KILL', $service;
ok($own->poll_query_until('postgres', q{SELECT state = 'backing off' AND report = 'exited with exit code 7' }
	. q{FROM gpusort_environment()}), 'a service that does not start, and how it ended');
rename "$directory/gpusortd.old", "$directory/gpusortd" or die $!;
$own->reload;
ok($own->wait_service, 'one that is right again');
is($own->safe_psql('postgres', q{SELECT state, coalesce(report, '') !~ 'cannot|exited' FROM gpusort_environment()}),
	'ready|t', 'is ready, and what was wrong is forgotten');
$own->stop;

done_testing;
