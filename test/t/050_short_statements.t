# Short statements do not notice that gpusort is preloaded: prepared joins of a few rows are planned as often, and
# need no fresh memory of the kernel, which a heap that is given back after each execution would.
use strict;
use warnings;

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

# Runs the statements in one session of a server: how often they were planned, and for the second half of the
# executions the page faults of the backend for each.
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
		CREATE INDEX ON a (id); CREATE INDEX ON b (a); VACUUM ANALYZE a, b});
	my $session = $node->session;
	my $faults = sub { return (split ' ', (slurp_file('/proc/' . $session->backend . '/stat') =~ /\) (.*)/)[0])[7] };

	$session->run("PREPARE q$_ (int) AS $statements[$_]") for 0 .. $#statements;
	# the same values twice, so that the tables' pages have been seen
	my $executed = join ";\n",
		map { my $i = $_; map { "EXECUTE q$_ (@{[ $i * 7 ]})" } 0 .. $#statements } 1 .. $executions;
	$session->run($executed);
	my $before = $faults->();
	$session->run($executed);
	my $each = ($faults->() - $before) / ($executions * @statements);
	my $plans = $session->run('SELECT name, generic_plans, custom_plans FROM pg_prepared_statements ORDER BY name');
	$session->close;
	$node->stop;
	return ($plans, $each);
}

my ($plain_plans, $plain_faults) = run_on('plain', '');
my ($plans, $faults) = run_on('preloaded', 'gpusort');
like($plain_plans, qr/\|[1-9][0-9]+\|[0-9]\b/, 'there are statements with a plan for all values');
like($plain_plans, qr/\|0\|[1-9]/, 'and such with one for each');
is($plans, $plain_plans, 'they are planned as often as without gpusort');
# one that gives its heap back and takes it again has dozens for each
cmp_ok($faults, '<', 1, 'executions need no fresh memory');
note "page faults for each execution: $plain_faults without gpusort, $faults with it";

done_testing;
