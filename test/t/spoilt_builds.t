# Indexes built while the service spoils what it gives out, at random, with gpusort.verify_rows as it comes: no index is
# there that amcheck refuses.  GPUSORT_SPOILT_BUILDS is how many are built, GPUSORT_SPOILT_SEED what repeats a run.
use strict;
use warnings;

use GpuSortNode;
use Test::More;

plan skip_all => 'no service with fault points: make gpusortd-faults' unless -x $fault_service;

my $builds = $ENV{GPUSORT_SPOILT_BUILDS} // 30;
my $seed = $ENV{GPUSORT_SPOILT_SEED} // time;
srand $seed;

my $node = GpuSortNode->new('main');
$node->init(
	conf => [ 'gpusort.verify_rows = off', 'gpusort.force = on', 'autovacuum = off', 'max_parallel_workers = 8',
		'max_worker_processes = 12', 'min_parallel_table_scan_size = 0' ]);
$node->own_module(gpusortd => $fault_service);
$node->start;
$node->wait_service;
plan skip_all => 'no amcheck' unless eval { $node->safe_psql('postgres', 'CREATE EXTENSION amcheck'); 1 };
is($node->safe_psql('postgres', 'SHOW gpusort.verify_rows'), 'off', 'rows are not verified by the setting');
my $check = $node->check_index;
$node->safe_psql('postgres', q{
	CREATE TABLE d AS
		SELECT i, hashint4(i)::int8 AS k, i % 100 AS few, md5(i::text) AS m FROM generate_series(1, 40000) i;
	VACUUM ANALYZE d;
});

my @indexes = ('INDEX spoilt ON d (k)', 'INDEX spoilt ON d (few)', 'INDEX spoilt ON d (m COLLATE "C")',
	'UNIQUE INDEX spoilt ON d (i)', 'INDEX spoilt ON d (m COLLATE "C", k) INCLUDE (few)',
	'INDEX spoilt ON d (few DESC, k)');
my @faults = qw(drop_row drop_row_and_bytes insert_row duplicate_row swap_rows flip_bit flip_bit flip_header flip_end
	lost_tie false_tie other_chunk chunk_again send_twice more_rows grant_twice);
my (%count, @bad);

sub pick
{
	my (@of) = @_;
	return $of[ rand @of ];
}

for my $number (1 .. $builds)
{
	my $fault = join ' ', pick(@faults), 1 + int rand 8, 1 + int rand 100_000;
	my $workers = int rand 4;
	my $index = pick(@indexes);
	my $error;

	$node->choose_fault($fault);
	$node->psql('postgres', "SET max_parallel_maintenance_workers = $workers; CREATE $index", stderr => \$error);
	my $happened = $node->fault_happened;
	$node->choose_fault(undef);
	$count{ !$happened ? 'without a fault' : $error =~ /ERROR/ ? 'ended in an error' : 'ended well' }++;
	push @bad, "$fault, $workers workers, $index: $error"
		if $error =~ /ERROR/ && $error !~ /the sort service (?:returned other rows than it was given|lost the rows)/;
	if ($error !~ /ERROR/ && $node->psql('postgres', 'SELECT ' . sprintf($check, "'spoilt'"), stderr => \$error) != 0)
	{
		push @bad, "$fault, $workers workers, $index: $error";
	}
	$node->safe_psql('postgres', 'DROP INDEX IF EXISTS spoilt');
}
is(join("\n", @bad), '', "of $builds spoilt builds, seed $seed, each ended in an error or made a good index");
note join ', ', map { "$_ $count{$_}" } sort keys %count;
cmp_ok($count{'ended in an error'} // 0, '>', 0, 'faults are found');
unlike($node->log_text, qr/PANIC|terminating any other active server processes/, 'no server process has crashed');
$node->stop;

done_testing();
