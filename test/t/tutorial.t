# doc/tutorial.md from a bare server to its last statement: the blocks of the page are run as they stand and in their
# order, the shell's by sh and those of SQL in one psql, and what comes out has the shape that the page says.
#
# A directory on PATH has stand-ins for what only a machine of one's own has: apt and make, whose work
# test/packages/walk does in a clean system; sudo, pg_conftool and systemctl, which work on the test's server; and
# curl, which makes up sales in the form of the published ones.
use strict;
use warnings;

use Documents;
use File::Temp qw(tempdir);
use GpuSortNode;
use PostgreSQL::Test::Utils qw(slurp_file);
use Test::More;

my $node = GpuSortNode->new('main');
$node->init(conf =>
	[ "shared_preload_libraries = ''", 'shared_buffers = 128MB', 'max_parallel_workers_per_gather = 2' ]);
# planned as by default
my $conf = $node->data_dir . '/postgresql.conf';
my $settings = slurp_file($conf) =~ s/^gpusort\.(?:min_rows|verify_rows).*\n//mgr;
open my $out, '>', $conf or die "$conf: $!";
print $out $settings;
close $out or die "$conf: $!";
$node->start;

my $bin = tempdir(CLEANUP => 1);
my $data = $node->data_dir;
my $log = $node->logfile;
my %stand_ins = (
	apt => 'exit 0',
	make => 'exit 0',
	sudo => '[ "$1" != -u ] || shift 2; exec "$@"',
	pg_conftool => qq{shift 3; echo "\$1 = '\$2'" >>'$conf'},
	systemctl => qq{exec pg_ctl -D '$data' -l '$log' -w -s restart},
	# two thirds of the towns are like each other in their first letters
	curl => q{exec perl -e '
		my @towns = map { ("LEEDS", "LEICESTER", "STOCKTON-ON-TEES $_") } 1 .. 40;
		my $year = $ARGV[-1] =~ /pp-(\d{4})/ ? $1 : die "no year";
		srand $year;
		printf "\"{%08X-%04X-4000-8000-%012X}\",\"%d\",\"%d-%02d-%02d 00:00\",\"AB%d %dCD\",\"T\",\"N\",\"F\",\"%d\",\"\","
			. "\"HIGH STREET %d\",\"\",\"%s\",\"%s\",\"COUNTY %d\",\"A\",\"A\"\n",
			rand 2**32, rand 2**16, $_, 50000 + int(rand 900000), $year, 1 + rand 12, 1 + rand 28, rand 99, rand 9, rand 200,
			rand 500, ($towns[rand @towns]) x 2, rand 40 for 1 .. 60000;
		' "$@"});
for my $name (keys %stand_ins)
{
	open my $file, '>', "$bin/$name" or die "$bin/$name: $!";
	print $file "#!/bin/sh\n$stand_ins{$name}\n";
	close $file or die "$bin/$name: $!";
	chmod 0755, "$bin/$name";
}
local $ENV{PATH} = "$bin:$ENV{PATH}";
local @ENV{qw(PGHOST PGPORT)} = ($node->host, $node->port);

my @blocks = blocks('doc/tutorial.md');
cmp_ok(scalar(@blocks), '>=', 8, 'the page has blocks');

my $database;
my $sql = '';
my $variables = '';	# which the shell of the page's reader keeps
for my $block (@blocks)
{
	my ($language, $text) = @$block;

	if ($language eq 'sql')
	{
		$sql .= "\\echo a block\n$text";
		next;
	}
	# the page goes on in the psql that its last command opens
	$database = $1 if $text =~ s/^.*\bpsql (\w+)\n\z//m;
	my $output = '';
	$variables .= join '', $text =~ /^(\w+=.*\n)/mg;
	IPC::Run::run([ 'sh', '-euc', $variables . $text ], '<', '/dev/null', '>', \$output, '2>&1',
				  IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	is($?, 0, 'runs: ' . $text =~ s/\n/; /gr) or diag $output;
}
die "no command of the shell opens psql\n" unless defined $database;
$node->_update_pid(1);
$node->wait_service;

my $output = '';
IPC::Run::run([ 'psql', '-X', $database ], '<', \$sql, '>', \$output, '2>&1',
			  IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
is($?, 0, 'psql runs to the end');
my (undef, @shown) = split /^a block\n/m, $output;
for my $text (map { $_->[1] } grep { $_->[0] eq 'sql' } @blocks)
{
	my $shown = shift @shown;
	my ($name) = $text =~ /^(?:\\timing.*\n)?(.*)/;

	unlike($shown, qr/ERROR|FATAL/, "runs: $name");
	if ($text =~ /gpusort_check/)
	{
		unlike($shown, qr/^ *error\b/m, 'no row is an error');
	}
	elsif ($text =~ /gpusort\.enable = off/)
	{
		like($shown, qr/WindowAgg.*-> +Sort\b.*Execution Time/s, 'without gpusort a Sort stands below WindowAgg');
		unlike($shown, qr/GpuSort/, 'and no GpuSort');
	}
	elsif ($text =~ /^EXPLAIN/m)
	{
		like($shown, qr/WindowAgg.*Custom Scan \(GpuSort\).*Sort Method: [cg]pu radix.*Execution Time/s, 'with it a GpuSort');
	}
	elsif ($text =~ /gpusort_explain/)
	{
		like($shown, qr/\(\d+ rows?\)/, 'gpusort_explain answers');
	}
	diag $shown if !Test::More->builder->is_passing;
}
$node->stop;

done_testing;
