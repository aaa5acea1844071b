# No archive for PGXN is made while nobody is named who answers for it, and script/publisher names them everywhere.
use strict;
use warnings;

use File::Basename qw(dirname);
use File::Copy qw(copy);
use File::Path qw(make_path);
use File::Temp ();
use IPC::Run;
use Test::More;

sub slurp_file
{
	my ($file) = @_;
	local $/;
	open my $in, '<', $file or die "$file: $!";
	return scalar <$in>;
}

my $root = dirname(__FILE__) . '/../..';
my $copy = File::Temp->newdir;
my ($files) = slurp_file("$root/script/publisher") =~ /^files=\((.*?)\)/ms;
my @files = split ' ', $files;
my @scripts = map { s{^\Q$root\E/}{}r } grep { -f $_ } glob("$root/script/*"), glob("$root/script/lib/*");
for my $file (@files, 'gpusort.control', @scripts)
{
	make_path("$copy/" . dirname($file));
	copy("$root/$file", "$copy/$file") or die "$file: $!";
	chmod 0755, "$copy/$file" if -x "$root/$file";
}

# Returns the exit status and what was printed.
sub run
{
	my (@command) = @_;
	my $output = '';
	IPC::Run::run([ map { s{^script/}{$copy/script/}r } @command ], '<', \undef, '>&', \$output);
	return ($? >> 8, $output);
}

my ($status, $output) = run('script/publisher', '--check');
plan skip_all => 'they have been filled in' if $status == 0;
my %named = map { $_ => 1 } $output =~ /^([^:\n]+):[0-9]+:/mg;
is_deeply([ sort keys %named ], [ sort @files ], 'each file has a placeholder');
($status, $output) = run('script/package', 'dist');
is($status, 1, 'script/package dist makes none');
like($output, qr{META\.json:.*script/publisher MAINTAINER REPOSITORY BUGTRACKER fills them in}s, 'and says what to do');

my @right = ('Jane Doe <jane@example.org>', 'https://git.example.org/gpusort',
	'https://bugs.example.org/gpusort?new=1&x=2');
for my $wrong ([ 'Jane Doe', @right[ 1, 2 ] ], [ $right[0], 'git.example.org', $right[2] ],
	[ @right[ 0, 1 ], 'nowhere' ], [ $right[0] ])
{
	($status, $output) = run('script/publisher', @$wrong);
	is($status, 2, "refused: @$wrong");
}
($status, $output) = run('script/publisher', @right);
is("$status$output", '0', 'they are filled in');
is((run('script/publisher', '--check'))[0], 0, 'none is left');
my $text = join '', map { slurp_file("$copy/$_") } @files;
is(scalar(() = $text =~ /gpusort\.invalid/g), 0, 'nowhere');
like(slurp_file("$copy/META.json"), qr/"maintainer": "\Q$right[0]\E".*"web": "\Q$right[2]\E".*"url": "\Q$right[1]\E"/s,
	'META.json has them');
like(slurp_file("$copy/debian/control"), qr/^Maintainer: \Q$right[0]\E\n.*^Vcs-Git: \Q$right[1]\E\n/ms,
	'and debian/control');
is(slurp_file("$copy/debian/control.in") =~ s/PGVERSION/15/gr =~ /^Maintainer: (.*)$/m && $1, $right[0],
	'and control.in');
like(slurp_file("$copy/SECURITY.md"), qr/^Write to jane\@example\.org, /m, 'SECURITY.md has the address');
like(slurp_file("$copy/debian/changelog"), qr/^ -- \Q$right[0]\E  /m, 'and debian/changelog');

done_testing;
