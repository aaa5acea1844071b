# The fuzzer (test/fuzz) for a few rounds, the same each time, and again with sorts done in runs as those larger than
# memory are.  GPUSORT_FUZZ_SEED is another seed; with a seed or with GPUSORT_FUZZ_SECONDS it makes as many rounds as
# fit so many seconds (30).
# What it finds is printed with the statements to reproduce it.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../fuzz";
use FuzzRun;
use Test::More;

# runs depend on no version: who leaves out what says little of versions leaves them out, too
for my $run_rows ($ENV{GPUSORT_WITHOUT_TESTS} ? 0 : (0, 100))
{
	my $run = FuzzRun->new(
		seed => $ENV{GPUSORT_FUZZ_SEED} // 20001,
		rounds => defined($ENV{GPUSORT_FUZZ_SEED} // $ENV{GPUSORT_FUZZ_SECONDS}) ? undef : 4,
		seconds => $ENV{GPUSORT_FUZZ_SECONDS} // 30,
		per_round => 25,
		max_rows => 3000,
		run_rows => $run_rows,
		report => sub { diag(@_) });
	diag("seed $run->{seed}");
	ok($run->run, 'gpusort answers as PostgreSQL does');
	diag($run->summary);
	cmp_ok($run->{queries}, '>', 0, 'queries were run');
	cmp_ok($run->{sorts}, '>', 0, 'and sorted by the service');
	SKIP:
	{
		skip 'auto_explain is not there', 3 unless $run->{explains};
		skip 'too few queries to tell', 3 if $run->{runs} < 100;
		my $nodes = $run->{nodes};
		diag($nodes->text);
		cmp_ok(scalar keys %{ $nodes->{gpusort} }, '>=', 6, 'sorts stood below nodes of many kinds');
		cmp_ok($nodes->{rescanned}, '>', 0, 'and were scanned again');
		cmp_ok($nodes->{exchange_runs}, '>', 0, 'and were read by every process');
	}
}

done_testing;
