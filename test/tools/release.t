# script/release makes a release of a copy of what is committed: a new name for a version that was not released, and
# then a version after one that was; the version is the same everywhere, and the section of CHANGELOG.md the tag's text.
use strict;
use warnings;

use File::Basename qw(dirname);
use File::Temp ();
use IPC::Run;
use Test::More;

my $root = dirname(__FILE__) . '/../..';
my $copy = File::Temp->newdir;

# Returns the exit status and what was printed.
sub run
{
	my (@command) = @_;
	my $output = '';
	IPC::Run::run(\@command, '<', \undef, '>&', \$output, init => sub { chdir $copy or die "$copy: $!" });
	return ($? >> 8, $output);
}

sub text_of
{
	my ($file) = @_;
	local $/;
	open my $in, '<', "$copy/$file" or die "$file: $!";
	return scalar <$in>;
}

sub put
{
	my ($file, $text) = @_;
	open my $out, '>', "$copy/$file" or die "$file: $!";
	print $out $text;
	close $out or die "$file: $!";
	return;
}

local @ENV{qw(GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL)} = ('a', 'a@example.org') x 2;
my $said = '';
plan skip_all => 'not a checkout of git'
	unless IPC::Run::run([ 'git', '-C', $root, 'rev-parse', 'HEAD' ], '>&', \$said);
IPC::Run::run([ 'git', 'clone', '-q', $root, "$copy" ], '>&', \$said) or die $said;

my ($old) = text_of('gpusort.control') =~ /^default_version = '([^']+)'/m;
my $released = text_of('test/sql/upgrade.sql') =~ /\('\Q$old\E', /;
my @points = split /\./, $old;
my ($next, $later) = ("$points[0]." . ($points[1] + 1) . '.0', "$points[0]." . ($points[1] + 2) . '.0');

for my $wrong ([], ['1'], [$old], [ $next, '--push' ])
{
	isnt((run('script/release', @$wrong))[0], 0, "refused: @$wrong");
}
is((run('git', 'status', '--porcelain'))[1], '', 'nothing is changed then');

# Makes a release, and looks at it.
sub release
{
	my ($version, $before) = @_;
	my ($status, $output) = run('script/release', $version, '--tag');

	is($status, 0, "$version is released") or diag $output;
	is((run('git', 'status', '--porcelain'))[1], '', 'all is committed');
	is((run('git', 'log', '-1', '--format=%s'))[1], "Release $version\n", 'by one commit');
	my ($section) = text_of('CHANGELOG.md') =~ /^## \Q$version\E\n+(.*?)\s*^## /ms;
	is((run('git', 'tag', '--list', '--format=%(contents)', "v$version"))[1] =~ s/\s*\z//r, "gpusort $version\n\n$section",
		'the tag has the section of CHANGELOG.md');
	like(text_of('gpusort.control'), qr/^default_version = '\Q$version\E'$/m, 'gpusort.control has it');
	is(scalar(() = text_of('META.json') =~ /"version": "\Q$version\E"/g), 2, 'META.json twice');
	like(text_of('META.json'), qr{"sql/gpusort--\Q$version\E\.sql"}, 'with the SQL');
	like(text_of('debian/changelog'),
		qr/\Agpusort \(\Q$version\E-1\) unstable.*?^ -- .+ <.+>  \w{3}, \d{2} \w{3} \d{4} /ms, 'debian/changelog');
	like(text_of('rpm/gpusort.spec'), qr/^Version: +\Q$version\E\n.*^%changelog\n\* .* - \Q$version\E-1\n/ms,
		'gpusort.spec');
	for my $file ('Dockerfile', 'Dockerfile.cuda',
		map { "packaging/cloudnative-pg/$_" } qw(Dockerfile README.md cluster.yaml metadata.hcl))
	{
		my $text = text_of($file);
		ok(index($text, $version) >= 0 && $text !~ /\Q$before\E(?![\d.])/, $file);
	}
	my $held = text_of('test/sql/upgrade.sql');
	my ($upgrade) = $held =~ /\('([\d.]+--\Q$version\E)', '[0-9a-f]{32}'\), \('\Q$version\E', '[0-9a-f]{32}'\)\)/;
	ok(defined $upgrade, 'upgrade.sql holds its scripts');
	like(text_of("sql/gpusort--$upgrade.sql"), qr/UPDATE TO '\Q$version\E'/, 'with a script to upgrade');
	return;
}

# a section of ten lines
my $new = "- What is new.\n\n";
put('CHANGELOG.md', $released ? text_of('CHANGELOG.md') =~ s/^(?=## )/## $next\n\n$new/mr
	: text_of('CHANGELOG.md') =~ s/^## \Q$old\E\n\n\K.*?(?=^## )/$new/msr);
run('git', 'commit', '-qam', 'Tell what is new');
release($next, $old);

put('CHANGELOG.md', text_of('CHANGELOG.md') =~ s/^(?=## )/"## $later\n\n" . ("- A line.\n" x 11) . "\n"/mer);
run('git', 'commit', '-qam', 'Tell what is new');
my ($status, $output) = run('script/release', $later);
isnt($status, 0, 'not with eleven lines of changes');
like($output, qr/11 lines/, 'which it says');
put('CHANGELOG.md', text_of('CHANGELOG.md') =~ s/^- A line\.\n//mr);
run('git', 'commit', '-qam', 'Tell less');
release($later, $next);
is(text_of("sql/gpusort--$later.sql"), text_of("sql/gpusort--$next.sql"), 'whose SQL is the same');
is(text_of("sql/gpusort--$next--$later.sql"),
	qq{\\echo Use "ALTER EXTENSION gpusort UPDATE TO '$later'" to load this file. \\quit\n},
	'so that to upgrade does nothing');

done_testing;
