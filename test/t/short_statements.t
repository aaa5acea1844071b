# Short statements do not notice that gpusort is preloaded: prepared joins of a few rows are planned as often, and
# need no fresh memory of the kernel, which a heap that is given back after each execution would.
use strict;
use warnings;

use File::Temp;
use GpuSortNode;
use PostgreSQL::Test::Utils qw(slurp_file);
use Test::More;

my @statements = (
	'SELECT a.id, b.id FROM a JOIN b ON a.id = b.a WHERE a.id = $1',
	'SELECT a.id, b.id FROM a JOIN b ON a.id = b.a WHERE a.id BETWEEN $1 AND $1 + 10',
	'SELECT a.id, b.id FROM a JOIN b ON a.id = b.a WHERE a.id BETWEEN $1 AND $1 + 10 ORDER BY b.id LIMIT 10',
	'SELECT a.g, count(*) FROM a JOIN b ON a.id = b.a JOIN a c ON c.id = b.id WHERE a.id BETWEEN $1 AND $1 + 10 '
		. 'GROUP BY a.g ORDER BY 1',
);
my $executions = 300;
# Of a wider statement planning frees more, until it is so much that the C library would give it back.
my @widths = map { 6 * $_ + 1 } 0 .. 24;

# Page faults of a session's backend
sub faults_of
{
	my ($session) = @_;

	return (split ' ', (slurp_file('/proc/' . $session->backend . '/stat') =~ /\) (.*)/)[0])[7];
}

# The page faults for each of statements that are executed again and again
sub faults_for_each
{
	my ($session, @executed) = @_;
	my $script = File::Temp->new;

	print $script map { "$_;\n" } @executed;
	close $script;
	chmod 0644, "$script";
	# the same values twice, so that the tables' pages have been seen
	$session->run("\\i $script\n");
	my $before = faults_of($session);
	$session->run("\\i $script\n");
	return (faults_of($session) - $before) / @executed;
}

# Runs the statements in one session of a server: how often they were planned, and the page faults for each; then for
# each width of a statement that is planned whenever it is executed, the page faults.
sub run_on
{
	my ($name, $libraries) = @_;
	my $node = GpuSortNode->new($name);

	$node->init(conf => [ "shared_preload_libraries = '$libraries'", 'autovacuum = off' ]);
	$node->start;
	$node->wait_service if $libraries ne '';
	$node->safe_psql('postgres', q{
		CREATE TABLE a AS SELECT i AS id, i % 1000 AS g FROM generate_series(1, 20000) i;
		CREATE TABLE b AS SELECT i AS id, i % 10000 AS a FROM generate_series(1, 20000) i;
		CREATE INDEX ON a (id); CREATE INDEX ON b (a);
		CREATE TABLE wide AS SELECT i AS id, } . join(', ', map { "i AS c$_" } 1 .. $widths[-1])
		. q{ FROM generate_series(1, 1000) i; CREATE INDEX ON wide (id); VACUUM ANALYZE a, b, wide});
	my $session = $node->session;
	$session->run("PREPARE q$_ (int) AS $statements[$_]") for 0 .. $#statements;
	my $each = faults_for_each($session,
		map { my $i = $_; map { "EXECUTE q$_ (@{[ $i * 7 ]})" } 0 .. $#statements } 1 .. $executions);
	my $plans = $session->run('SELECT name, generic_plans, custom_plans FROM pg_prepared_statements ORDER BY name');
	$session->close;
	my @of_widths;
	for my $width (@widths)
	{
		my $columns = join ', ', map { "c$_" } 1 .. $width;

		$session = $node->session;
		push @of_widths, faults_for_each($session,
			map { "SELECT $columns, a.g FROM wide JOIN a USING (id) WHERE id = $_" } 1 .. $executions);
		$session->close;
	}
	$node->stop;
	return ($plans, $each, @of_widths);
}

my ($plain_plans, $plain_faults, @plain_of_widths) = run_on('plain', '');
my ($plans, $faults, @of_widths) = run_on('preloaded', 'gpusort');
like($plain_plans, qr/\|[1-9][0-9]+\|[0-9]\b/, 'there are statements with a plan for all values');
like($plain_plans, qr/\|0\|[1-9]/, 'and such with one for each');
is($plans, $plain_plans, 'they are planned as often as without gpusort');
# one that gives its heap back and takes it again has dozens for each
cmp_ok($faults, '<', 1, 'executions need no fresh memory');
cmp_ok($of_widths[$_], '<', 3, "nor do those of $widths[$_] columns") for 0 .. $#widths;
note sprintf 'page faults of statements of %s columns: %s without gpusort, %s with it', join(' ', @widths),
	map { join ' ', map { sprintf '%.1f', $_ } @$_ } \@plain_of_widths, \@of_widths;
note "page faults for each execution: $plain_faults without gpusort, $faults with it";

done_testing;
