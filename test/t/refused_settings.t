# Settings that restrict and are not legal: what comes in their place restricts, too, wherever they
# were given and however the module is loaded; a list of devices is read with blanks.
use strict;
use warnings;

use GpuSortNode;
use Test::More;

# name, what is given, what counts
my @given = (
	[ 'gpusort.enable', 'nope', 'off' ],
	[ 'gpusort.allowed', 'nope', 'off' ],
	[ 'gpusort.spill', 'maybe', 'off' ],
	[ 'gpusort.verify_rows', 'nope', 'on' ],
	[ 'gpusort.verify_collation', 'nope', 'on' ],
	[ 'gpusort.engine', 'hosts', 'host' ],
	[ 'gpusort.devices', 'first', 'none' ],
	[ 'gpusort.devices', '0,0', 'none' ],
	[ 'gpusort.devices', '64', 'none' ],
	[ 'gpusort.device_memory', '-1', '1MB' ],
	[ 'gpusort.device_memory', '400kB', '1MB' ],
	[ 'gpusort.device_memory', 'little', '1MB' ],
	[ 'gpusort.host_memory', '2MB', '16MB' ],
	[ 'gpusort.host_memory', '400kB', '16MB' ],
	[ 'gpusort.host_memory', 'little', '16MB' ],
	[ 'gpusort.host_memory', '9000000TB', '1073741823MB' ],
	[ 'gpusort.host_threads', '-1', '1' ],
	[ 'gpusort.host_threads', '2000', '1024' ],
	[ 'gpusort.staging_memory', '1MB', '16MB' ],
	[ 'gpusort.staging_memory', '100TB', '64GB' ],
	[ 'gpusort.staging_memory', '1 apple', '16MB' ],
);
# what is legal counts as it is
my @legal = (
	[ 'gpusort.allowed', 'off', 'off' ],
	[ 'gpusort.host_memory', '0', '0' ],
	[ 'gpusort.host_memory', '16MB', '16MB' ],
	[ 'gpusort.host_memory', '1.5GB', '1536MB' ],
	[ 'gpusort.host_threads', '2', '2' ],
	[ 'gpusort.devices', '0, 1', '0, 1' ],
	[ 'gpusort.devices', ' 3 ,2', ' 3 ,2' ],
	[ 'gpusort.devices', 'none', 'none' ],
	[ 'gpusort.engine', 'auto', 'auto' ],
);

sub lines
{
	return join "\n", map { "$_->[0] = '$_->[1]'" } @_;
}

# Of a server that preloads it: one start for each of several values of a setting.
my @rounds;
for my $case (@given, @legal)
{
	my ($round) = grep { my $r = $_; !grep { $_->[0] eq $case->[0] } @$r } @rounds;
	push @rounds, $round = [] unless $round;
	push @$round, $case;
}
for my $i (0 .. $#rounds)
{
	# a service with a pool of 64 GB is not to be started here
	my $node = GpuSortNode->new("preloaded$i");
	my @cases = @{ $rounds[$i] };
	my $script = $node->basedir . '/no-service';
	$node->init(conf => [ lines(@cases) ]);
	open my $file, '>', $script or die "$script: $!";
	print $file "#!/bin/sh\nexec sleep 1000\n";
	close $file;
	$node->own_module(gpusortd => $script);
	$node->start;
	is($node->safe_psql('postgres', "SHOW $_->[0]"), $_->[2], "preloaded with $_->[0] = '$_->[1]'") for @cases;
	for my $case (grep { my $c = $_; grep { $_ == $c } @given } @cases)
	{
		like($node->log_text,
			qr/WARNING:\s+\Q$case->[0]\E is set to "\Q$case->[2]\E" instead of "\Q$case->[1]\E"/, 'the log tells');
	}
	$node->stop;
}

# What a service gets, what comes later, and where else settings are given.
my $node = GpuSortNode->new('main');
$node->init(conf => [ "gpusort.allowed = 'nope'", "gpusort.host_memory = '2MB'", "gpusort.staging_memory = '1MB'",
	"gpusort.devices = '1, 1'" ]);
$node->start;
sub arguments
{
	return join ' ', map { split /\0/, command_line($_) } $node->services;
}
my $arguments;
ok(wait_until(sub { ($arguments = arguments()) =~ /--engine/ }), 'a service');
like($arguments, qr/--host-memory 16777216 --staging-memory 16777216 /, 'the service has the least of limits');
like($arguments, qr/--engine host --devices all/, 'and no devices');
unlike($node->safe_psql('postgres', 'SET gpusort.force = on; EXPLAIN SELECT i FROM generate_series(1, 100000) i '
	. 'ORDER BY i'), qr/GpuSort/, 'gpusort.allowed is off');
$node->adjust_conf('postgresql.conf', 'gpusort.allowed', 'on');
$node->append_conf('postgresql.conf', "gpusort.devices = '1, 2'\ngpusort.host_memory = '32MB'\n");
$node->reload;
ok(wait_until(sub { $node->safe_psql('postgres', 'SHOW gpusort.allowed') eq 'on' }),
	'a legal one counts after a reload');
ok(wait_until(sub { arguments() =~ /--engine auto --devices 1,2 .*--host-memory 33554432 / }),
	'the service has them, the list without blanks');
# PostgreSQL keeps what was, as with its own settings
$node->append_conf('postgresql.conf', "gpusort.host_memory = '2MB'\n");
$node->reload;
ok(wait_until(sub { $node->log_lines(qr/invalid value for parameter "gpusort.host_memory": 2/) }),
	'an illegal one is refused at a reload');
is($node->safe_psql('postgres', 'SHOW gpusort.host_memory'), '32MB', 'and what was stays');

# Errors where somebody asks
my (undef, undef, $err) = $node->psql('postgres', q{ALTER SYSTEM SET gpusort.devices = '1,2,1'});
like($err, qr/DETAIL:.*Device 1 is listed twice/, 'a device that is named twice');
(undef, undef, $err) = $node->psql('postgres', q{ALTER SYSTEM SET gpusort.devices = '1;2'});
like($err, qr/DETAIL:.*from 0 to 63, separated by commas/, 'a list that is none');
(undef, undef, $err) = $node->psql('postgres', q{ALTER ROLE postgres SET gpusort.allowed = 'nope'});
like($err, qr/ERROR:.*requires a Boolean/, 'a role with a value that is none');
$node->stop;

# Without preloading PostgreSQL does not know what is legal when a role or a database gets a setting.
my $plain = GpuSortNode->new('plain');
$plain->init(conf => [ "shared_preload_libraries = ''", "gpusort.host_memory = '2MB'", 'gpusort.allowed = on' ]);
$plain->start;
$plain->safe_psql('postgres', q{CREATE ROLE bob LOGIN; ALTER ROLE bob SET gpusort.allowed = 'nope'; }
	. q{ALTER ROLE bob SET session_preload_libraries = 'gpusort'});
is($plain->safe_psql('postgres', 'SHOW gpusort.allowed', extra_params => [qw(-U bob)]), 'off',
	'a role whose gpusort.allowed is not legal');
is($plain->safe_psql('postgres', "LOAD 'gpusort'; SHOW gpusort.allowed"), 'on', 'and one without');
is($plain->safe_psql('postgres', "LOAD 'gpusort'; SHOW gpusort.host_memory"), '16MB', 'loaded later, too');
is($plain->safe_psql('postgres', "SET gpusort.allowed = 'nope'; LOAD 'gpusort'; RESET gpusort.allowed; "
	. "SHOW gpusort.allowed"), 'on', 'what a session did goes with it');
$plain->stop;

done_testing;
