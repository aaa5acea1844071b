# Each block of the pages about how to do something, and of the reference, is run: as it stands and in the page's order,
# in sessions of a server that preloads gpusort, and has the table of README.md.  What a page shows of a session is
# samples.t's, the tutorial tutorial.t's, what README.md has done to install gpusort test/packages/walk's.
#
# %elsewhere has what cannot be run here, each with the reason, which is printed.  A block that nothing here knows is a
# failure.
use strict;
use warnings;

use Documents;
use GpuSortNode;
use IPC::Run ();
use PostgreSQL::Test::Utils qw(slurp_file);
use Test::More;

my %elsewhere = (
	'docker' => 'script/test containers builds and runs the images, where there is a container engine',
	'make install datadir=' => 'installs elsewhere; installed_files.t does it on PostgreSQL 18',
	"shared_preload_libraries = 'gpusort'\nextension_control_path" => 'installed_files.t has it on PostgreSQL 18',
	"shared_preload_libraries = 'citus,gpusort'" => 'citus.t has it, where Citus is installed',
	'bench/costs' => 'takes eight minutes; script/test tools runs it with few rows',
	'=# ' => 'samples.t compares what it shows',
	' Custom Scan' => 'scale_out.t has this plan',
	' Limit' => 'citus.t has this plan, where Citus is installed',
);
my %pages_elsewhere = ('bench/README.md' => 'benchmarks take hours; script/test tools runs them with few rows');

my @conf = ('max_parallel_workers_per_gather = 2', 'shared_buffers = 128MB', 'gpusort.min_rows = 2000',
	'gpusort.verify_rows = off', 'gpusort.staging_memory = 32MB');
my $node = GpuSortNode->new('main');
$node->init(conf => [ @conf, q{shared_preload_libraries = 'gpusort,pg_stat_statements'} ]);
$node->start;
$node->wait_service;

# the table that the pages sort
my ($example) = grep { /^CREATE EXTENSION gpusort;.*^EXPLAIN/ms } map { $_->[1] } blocks('README.md');
$node->safe_psql('postgres', $example =~ s/generate_series\(1, \K\d+/20000/r);
$node->safe_psql('postgres',
	'CREATE EXTENSION pg_stat_statements; CREATE TABLE few AS SELECT generate_series(1, 10) AS a; ANALYZE few');

# Runs statements in one session of a server's database.  Returns what psql prints, with its notices.
sub run_sql
{
	my ($server, $database, $sql) = @_;
	my $output = '';

	IPC::Run::run([ 'psql', '-X', '-v', 'ON_ERROR_STOP=1', '-d', $server->connstr($database) ], '<', \$sql, '>', \$output,
				  '2>&1', IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	is($?, 0, 'runs: ' . $sql =~ s/\s+/ /gr) or diag $output;
	return $output;
}

# What is to be seen of a block, by the first pattern that it matches: a function of the block and what psql printed.
my @expected = (
	[ qr/^CREATE ROLE exporter/, sub {
		is($node->safe_psql('postgres', 'SELECT count(*) >= 0 FROM gpusort_jobs', extra_params => [ '-U', 'exporter' ]), 't',
			'the role reads the views') } ],
	[ qr/^EXPLAIN SELECT \.\.\./m, sub {
		like($_[1], qr/LOG:  gpusort: not used: 10 rows are fewer than gpusort\.min_rows/, 'the session sees the reason') } ],
	[ qr/^CREATE INDEX ON words/m, sub {
		like($_[1], qr/LOG:  gpusort: index|LOG:.*index "words_/, 'it is told who builds') } ],
	[ qr/^ALTER SYSTEM SET gpusort.host_memory/, sub {
		like($_[1], qr/host memory/, 'gpusort_check() judges it');
		ok(wait_until(sub { $node->safe_psql('postgres', 'SHOW gpusort.host_memory') eq '4GB' }), 'it is in force');
		$node->wait_service } ],
	[ qr/^ALTER EXTENSION gpusort UPDATE/, sub {
		my ($version) = slurp_file('gpusort.control') =~ /^default_version = '([^']+)'/m;
		is($node->safe_psql('old', q{SELECT extversion FROM pg_extension WHERE extname = 'gpusort'}), $version,
			'the extension is the newest one') } ],
	[ qr/^DROP EXTENSION gpusort/, sub {
		is($node->safe_psql('old', q{SELECT count(*) FROM pg_class WHERE relname LIKE 'gpusort%'}), '0',
			'no view is left') } ],
	[ qr/FROM gpusort_check\(\)/, sub { unlike($_[1], qr/^ *error\b/m, 'no row is an error') } ],
	[ qr/FROM gpusort_advise/, sub { like($_[1], qr/\(\d+ rows?\)/, 'statements are judged') } ],
	[ qr/FROM gpusort_service/, sub { like($_[1], qr/^ ready /m, 'the service is ready') } ],
);

# Blocks of a page that a single server can run.
sub run_block
{
	my ($text) = @_;
	my $database = 'postgres';

	# on a former version, which is removed
	if ($text =~ /^(?:ALTER|DROP) EXTENSION/)
	{
		$database = 'old';
		$node->safe_psql('postgres', 'CREATE DATABASE old') if $text =~ /^ALTER/;
		$node->safe_psql('old', q{CREATE EXTENSION gpusort VERSION '0.1.0'}) if $text =~ /^ALTER/;
	}
	# as the page says: the server has no gpusort then
	$node->append_conf('postgresql.conf', q{shared_preload_libraries = ''}) if $text =~ /^DROP/;
	$node->restart if $text =~ /^DROP/;
	my $output = run_sql($node, $database, $text =~ s/^EXPLAIN SELECT \K\.\.\./* FROM few ORDER BY a/mr);
	if (my ($found) = grep { $text =~ $_->[0] } @expected) { $found->[1]->($text, $output) }
	if ($text =~ /^DROP/)
	{
		$node->append_conf('postgresql.conf', q{shared_preload_libraries = 'gpusort,pg_stat_statements'});
		$node->restart;
		$node->wait_service;
	}
	return;
}

# The page of several machines: its statements at three servers, with 4,000 rows.
sub run_machines
{
	my @texts = @_;
	my %server = (coordinator => $node);

	for my $shard ('one', 'two')
	{
		$server{$shard} = GpuSortNode->new($shard);
		$server{$shard}->init(conf => \@conf);
		$server{$shard}->start;
		$server{$shard}->wait_service;
	}
	$node->safe_psql('postgres', 'CREATE DATABASE several');
	for my $text (@texts)
	{
		$text =~ s/generate_series\(1, \K2000000/4000/;
		$text =~ s/host '$_\.example'/"host '" . $server{$_}->host . "', port '" . $server{$_}->port . "'"/e for 'one', 'two';
		if ($text !~ /\bt1\b/ && $text !~ /^SELECT|FOREIGN/m)
		{
			run_sql($server{$_}, 'postgres', $text) for 'one', 'two';
			next;
		}
		if ($text =~ /FROM first_of_t OFFSET 0/)
		{
			# which the page leaves to its reader
			$node->safe_psql('several', q{CREATE TABLE first_of_t (LIKE t) PARTITION BY HASH (g)} . join '', map {
				"; CREATE FOREIGN TABLE first_of_t$_ PARTITION OF first_of_t FOR VALUES WITH (MODULUS 2, REMAINDER @{[ $_ - 1 ]})
					SERVER shard$_ OPTIONS (table_name 'first_of_t')" } 1, 2);
			$node->safe_psql('several', join ';', map {
				"CREATE FOREIGN TABLE g$_ (k int8, n int8, s numeric) SERVER shard$_ OPTIONS (table_name 'groups_of_t')" } 1, 2);
		}
		run_sql($node, 'several', $text);
		if ($text =~ /^SELECT/ && $text !~ /^SELECT k,/)
		{
			my $query = $text =~ s/;\s*\z//r;
			my $same = $text =~ /LIMIT 1000;$/ ? 'SELECT * FROM t ORDER BY k8 LIMIT 1000'
				: 'SELECT DISTINCT ON (g) * FROM t ORDER BY g, k8';
			is($node->safe_psql('several', "SELECT count(*) FROM (($query) EXCEPT ($same)) d"), '0', 'the rows are right');
			cmp_ok($node->safe_psql('several', "SELECT count(*) FROM ($query) q"), '==', $node->safe_psql('several',
				"SELECT count(*) FROM ($same) q"), 'and all there');
		}
	}
	$server{$_}->stop for 'one', 'two';
	return;
}

# What is not run is told once for each reason and page.
sub pass_over
{
	my ($page, $what, $reason) = @_;

	SKIP: { skip "$page: $what: $reason", 1 }
	return;
}

for my $page (pages('How to', 'Reference'))
{
	my @here;

	if (my $reason = $pages_elsewhere{$page})
	{
		pass_over($page, 'all', $reason);
		next;
	}
	for my $block (blocks($page))
	{
		my ($language, $text) = @$block;
		my ($known) = grep { index($text, $_) == 0 } keys %elsewhere;

		if (defined $known)
		{
			pass_over($page, $text =~ s/\n.*//sr, $elsewhere{$known});
		}
		elsif ($language eq 'sql' || $text =~ /^SELECT/)
		{
			push @here, $text;
		}
		else
		{
			fail("$page: how to run this is not known: " . $text =~ s/\n/; /gr);
		}
	}
	if ($page eq 'doc/scale-out.md') { run_machines(@here) }
	else { run_block($_) for @here }
}
$node->stop;

done_testing;
