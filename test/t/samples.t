# What README.md and the documents show of a session is what a session shows: their statements are
# run, and their plans compared.  Numbers may differ, and "..." is anything.
use strict;
use warnings;

use Documents;
use File::Basename qw(dirname);
use GpuSortNode;
use PostgreSQL::Test::Utils qw(slurp_file);
use Test::More;

plan skip_all => 'samples are of the host engine' unless $engine eq 'host';

my $root = dirname(__FILE__) . '/../..';
my $node = GpuSortNode->new('main');
$node->init(conf => [ 'max_parallel_workers_per_gather = 2', 'gpusort.min_rows = 2000', 'gpusort.verify_rows = off',
	'shared_buffers = 128MB', q{shared_preload_libraries = 'gpusort,pg_stat_statements'} ]);
$node->start;
$node->wait_service;
my $version = $node->safe_psql('postgres', 'SHOW server_version_num');
$node->safe_psql('postgres', 'CREATE EXTENSION pg_stat_statements');

# A pattern for what a sample shows.
sub pattern
{
	my ($sample) = @_;
	my $pattern = join '\n', map { quotemeta } split /\n/, $sample;

	$pattern =~ s/\\\.\\\.\\\./.*/g;
	$pattern =~ s/Device\\:\\ .*?(?=\\n)/Device: .*/g;
	# a number with its fraction, but for those of names
	$pattern =~ s/(?<![A-Za-z])[0-9]+(?:\\\.[0-9]+)?/[0-9]+(?:\\.[0-9]+)?/g;
	return qr/^$pattern$/;
}

# Statements run without an error, in one session; what the last one shows is returned.
sub shown
{
	my ($name, $sql) = @_;
	my ($status, $out, $err) = $node->psql('postgres', $sql);

	is($err =~ /(ERROR:.*)/ ? $1 : '', '', "$name: runs");
	return $out =~ s/^\s+|\s+$//gr;
}

sub compare
{
	my ($name, $got, $sample) = @_;
	# aligned output has a space before each line
	$sample =~ s/^ //mg;
	$sample =~ s/\s+$//;
	like($got, pattern($sample), "$name: shows what it does");
	return;
}

# of pgbench, and of README.md's own
$node->safe_psql('postgres',
	q{CREATE TABLE pgbench_accounts AS
	SELECT i AS aid, 1 AS bid, i::int8 * 7919 % 10007 AS abalance, repeat(' ', 84) AS filler
	FROM generate_series(1, 300000) i;
	ANALYZE pgbench_accounts});
my %count;
for my $text (map { $_->[1] } grep { $_->[0] eq '' } map { blocks($_) } 'README.md', pages('How to', 'Reference'))
{
	if ($text =~ /^CREATE EXTENSION gpusort;.*^EXPLAIN/ms)
	{
		# its table is what the samples of doc/explain.md are of
		like(shown('the first example', $text), qr/Custom Scan \(GpuSort\).*Sort Method: cpu radix/ms,
			'the first example is sorted by gpusort');
		$count{example}++;
	}
	elsif ($text =~ /^=# (.*?;)\n(.*)/s)
	{
		my ($sql, $sample) = ($1, $2);

		next if $sql =~ /GPUSORT/ && $version < 180000;
		compare($sql, shown($sql, $sql), $sample);
		$count{session}++;
	}
}
is_deeply([ sort keys %count ], [qw(example session)], 'there are samples of both kinds');

# what is counted in words
my %words = (five => 5, six => 6, seven => 7, eight => 8, nine => 9);
my ($said) = slurp_file("$root/README.md") =~ /runs (\w+) large `ORDER BY`s/;
my ($queries) = slurp_file("$root/script/demo") =~ /^queries=\((.*?)^\)/ms;
is($words{$said}, scalar(() = $queries =~ /ORDER BY/g), 'README.md says how many ORDER BYs script/demo runs');

# every property and node of EXPLAIN is in doc/explain.md
my $explain = slurp_file("$root/doc/explain.md");
my %shown = map { $_ => 1 } map { slurp_file($_) =~ /ExplainProperty\w+\("([^"]+)"/g } glob "$root/src/exec/*.c";
# parts of what text shows as one
delete @shown{ 'Encoded', 'Packed', 'Verified Pairs', 'Ingest', 'Upload Wait', 'Sort', 'Verify', 'Gather', 'Emit',
	'Ties' };
is(join(', ', grep { $explain !~ /`\Q$_\E`/ } sort keys %shown), '', 'doc/explain.md has every property of EXPLAIN');
is(join(', ', grep { $explain !~ /`$_`/ } qw(GpuSort GpuSortIngest GpuSortOutput GpuSortExchange)), '',
	'and every node');
$node->stop;

done_testing;
