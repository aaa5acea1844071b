# Documents - the pages of the documents, and the blocks between their fences, for tests that run what pages show.
#
#   for my $page (pages('How to', 'Reference'))		# files from the root of the repository
#   {
#       my ($language, $text) = @$_ for blocks($page);
#   }
package Documents;

use strict;
use warnings;

use Cwd qw(realpath);
use Exporter qw(import);
use File::Basename qw(dirname);

our @EXPORT = qw(blocks pages);
my $root = realpath(dirname(__FILE__) . '/../..');

sub text_of
{
	open my $handle, '<', "$root/$_[0]" or die "$_[0]: $!\n";
	local $/;
	return scalar <$handle>;
}

# The pages of these sections of the site, in its order (mkdocs.yml).
sub pages
{
	my %wanted = map { $_ => 1 } @_;
	my ($nav) = text_of('mkdocs.yml') =~ /^nav:\n(.*)/ms;
	my ($section, @pages);

	for (split /\n/, $nav)
	{
		$section = $1 if /^  - ([^:]+):$/;
		push @pages, $1 if /^      - [^:]+: (\S+\.md)$/ && $wanted{$section};
	}
	die "mkdocs.yml has none of the sections @_\n" unless @pages;
	return @pages;
}

# The blocks of a page, each a list of its language, '' if it has none, and its text.  A block of a list's item is there
# without the item's indentation.
sub blocks
{
	my ($page) = @_;
	my $text = text_of($page);
	my @blocks;

	while ($text =~ /^([ ]*)```(\w*)\n(.*?)^[ ]*```$/msg)
	{
		my ($indentation, $language, $block) = ($1, $2, $3);
		push @blocks, [ $language, $block =~ s/^$indentation//mgr ];
	}
	return @blocks;
}

1;
