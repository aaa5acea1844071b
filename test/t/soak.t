# The soak (test/soak) for some seconds, with other faults each time: script/soak does it for minutes.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../fuzz", "$FindBin::RealBin/../soak";
use SoakRun;
use Test::More;

my $run = SoakRun->new(seconds => 14, processes => 2, report => sub { diag(map { s/\n\z//r } @_) });
diag("seed $run->{seed}");
ok($run->run, 'nothing is wrong') or diag(join "\n", @{ $run->{problems} });
is($run->{restarts}, 0, 'the server has not restarted');
cmp_ok($run->{sums}{queries}, '>', 0, 'queries were run');
cmp_ok($run->{sums}{sorts}, '>', 0, 'and sorted by the service');
cmp_ok($run->{sums}{'witness answers'}, '>', 0, 'witnesses were answered');
my %faults = %{ $run->{faults}{counts} };
cmp_ok(scalar keys %faults, '>', 0, 'there were faults');
diag(join ', ', map { "$_ $faults{$_}" } sort keys %faults);

done_testing;
