# The module in a directory of its own brings its service along; a service of another build, as after
# make install under a running server, does not serve: exit code 2, and PostgreSQL sorts.
use strict;
use warnings;

use GpuSortNode;
use PostgreSQL::Test::Utils qw(slurp_file);
use Test::More;

my $node = GpuSortNode->new('main');
$node->init;
my $directory = $node->own_module;
$node->start;
my $service = $node->wait_service;
is(readlink "/proc/$service/exe", "$directory/gpusortd", 'the service is the one beside the module');
is($node->safe_psql('postgres', 'SHOW shared_preload_libraries'), "$directory/gpusort",
	'which is not where PostgreSQL has its modules');
my ($supervisor) = $node->supervisors;
my $maps = slurp_file("/proc/$supervisor/maps");
like($maps, qr{\Q$directory\E/gpusort\.so}, 'the supervisor runs it');
unlike($maps, qr{lib/gpusort\.so}, 'and no other');

# another build is installed in its place
my ($build) = command_line($service) =~ /--build\0([0-9a-f]{16})\0/;
ok(defined $build, 'the service was told the build of the module');
my $program = slurp_file("$directory/gpusortd");
is(scalar(() = $program =~ /\Q@{[ pack 'Q', hex $build ]}\E/g), 1, 'it has it once');
$program =~ s/\Q@{[ pack 'Q', hex $build ]}\E/pack 'Q', hex($build) ^ 0x55/e;
rename "$directory/gpusortd", "$directory/gpusortd.old" or die $!;
open my $file, '>:raw', "$directory/gpusortd" or die $!;
print $file $program;
close $file;
chmod 0755, "$directory/gpusortd";
is($node->method, 'radix', 'what runs goes on');

kill 'KILL', $service;
ok(wait_until(sub { $node->log_lines(qr/LOG:.*exited with exit code 2/) }), 'its successor exits with code 2');
is(scalar $node->log_lines(qr/LOG:.*exited with exit code 2/), 1, 'as the log tells once');
ok($node->log_lines(qr/of build [0-9a-f]{16}, the server's module of $build: restart the server/), 'and why');
is($node->safe_psql('postgres', 'SET gpusort.force = on; SET gpusort.log_decisions = on; '
	. 'SELECT string_agg(i::text, \',\') FROM (SELECT i FROM generate_series(1, 5) i ORDER BY i DESC) s'), '5,4,3,2,1',
   'PostgreSQL sorts');
like($node->method, qr/^(?:native|fallback)$/, 'by itself');
is($node->waits_in_vain, 0, 'without waiting');
ok($node->log_lines(qr/(?:not used|falling back to tuplesort): the sort service (?:ended|is not running)/),
	'because there is no service');
# the supervisor tries again after growing delays, so one may live for a moment
ok(wait_until(sub { !$node->services }), 'no service stays');

# the right one again
rename "$directory/gpusortd.old", "$directory/gpusortd" or die $!;
$node->safe_psql('postgres', q{ALTER SYSTEM SET gpusort.staging_memory = '65MB'});
$node->reload;
ok($node->wait_service, 'the right build serves again');

done_testing;
