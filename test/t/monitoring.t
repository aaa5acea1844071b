# The monitoring kit: each query of monitoring/ runs as a member of pg_monitor and gives the columns that are
# said of it; what the dashboard and doc/monitoring.md ask for is among the metrics; and postgres_exporter,
# where it is installed, gives them all.
use strict;
use warnings;

use CPAN::Meta::YAML;
use File::Basename qw(dirname);
use File::Spec;
use GpuSortNode;
use HTTP::Tiny;
use IPC::Run;
use JSON::PP;
use PostgreSQL::Test::Utils qw(slurp_file);
use Test::More;

my $root = dirname(__FILE__) . '/../..';
my $node = GpuSortNode->new('main');
$node->init;
$node->start;
$node->wait_service;
$node->safe_psql('postgres', q{CREATE EXTENSION gpusort; CREATE ROLE exporter LOGIN IN ROLE pg_monitor});
# something to be counted, and a fallback
$node->safe_psql('postgres',
	q{SET gpusort.force = on; SELECT count(*) FROM (SELECT i FROM generate_series(1, 5000) i ORDER BY -i OFFSET 0) s;
	SET gpusort.engine = cuda; SELECT count(*) FROM (SELECT i FROM generate_series(1, 5000) i ORDER BY -i OFFSET 0) s});
$node->safe_psql('postgres', q{SET gpusort.force = on; BEGIN; DECLARE c CURSOR FOR SELECT i }
	. q{FROM generate_series(1, 5000) i ORDER BY -i; MOVE 1 IN c; SET gpusort.allowed = off; COMMIT});

# --- the queries -------------------------------------------------------------------------------

my ($queries) = @{ CPAN::Meta::YAML->read_string(slurp_file("$root/monitoring/queries.yaml")) };
my ($collector) = @{ CPAN::Meta::YAML->read_string(slurp_file("$root/monitoring/gpusort.collector.yml")) };
my %collected = map { $_->{query_name} => $_->{query} } @{ $collector->{queries} };
my %metrics;	# name => [type, labels]
my @exporter = (extra_params => [qw(-U exporter)]);

for my $name (sort keys %$queries)
{
	my $query = $queries->{$name}{query};
	my %usage = map { my ($column) = keys %$_; $column => $_->{$column}{usage} } @{ $queries->{$name}{metrics} };
	my @labels = sort grep { $usage{$_} eq 'LABEL' } keys %usage;
	# the columns and their types, whatever rows there are
	my %types = map { split /\|/ } split /\n/,
		$node->safe_psql('postgres', "CREATE TEMP TABLE columns AS SELECT * FROM ($query) q WITH NO DATA;
		SELECT attname, format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = 'columns'::regclass AND attnum > 0",
			@exporter);

	is_deeply([ sort keys %types ], [ sort keys %usage ], "$name: its columns are its metrics and labels");
	is(join(' ', grep { $types{$_} !~ ($usage{$_} eq 'LABEL' ? qr/^(?:text|name)$/
		: qr/^(?:integer|bigint|numeric|double precision)$/) } sort keys %types), '',
		"$name: labels are texts, metrics are numbers");
	is($node->safe_psql('postgres', "SELECT count(*) FROM ($query) q WHERE NOT q IS NOT NULL", @exporter), '0',
		"$name: no value is unknown");
	is($node->safe_psql('postgres', 'SELECT count(*) FROM (' . $query . ') q GROUP BY ' . (join(', ', @labels) || '()')
		. ' HAVING count(*) > 1', @exporter), '', "$name: a row for each set of labels");
	cmp_ok($node->safe_psql('postgres', "SELECT count(*) FROM ($query) q", @exporter), '>', 0, "$name: there are rows")
		unless $name eq 'gpusort_fallback';
	is($collected{$name} =~ s/\s+/ /gr, $query =~ s/\s+/ /gr, "$name: gpusort.collector.yml has the same query");
	$metrics{"${name}_$_"} = [ lc $usage{$_}, @labels ] for grep { $usage{$_} ne 'LABEL' } keys %usage;
}
is_deeply({ map { $_->{metric_name} => [ $_->{type}, sort @{ $_->{key_labels} // [] } ] } @{ $collector->{metrics} } },
	\%metrics, 'gpusort.collector.yml has the same metrics');
is(join(' ', grep { my $m = $_; $m->{metric_name} ne "$m->{query_ref}_$m->{values}[0]" } @{ $collector->{metrics} }),
	'', 'each of its column');
is($node->safe_psql('postgres', "SELECT sorts FROM ($queries->{gpusort_stats}{query}) q WHERE datname = 'postgres'",
	@exporter), $node->safe_psql('postgres', 'SELECT sorts FROM gpusort_stats'), 'a value is that of the view');

# --- what asks for them ------------------------------------------------------------------------

sub unknown
{
	my ($text) = @_;
	return join ' ', grep { !$metrics{$_} } $text =~ /\b(gpusort_[a-z_]+)(?=[\[{ )]|$)/g;
}
my $dashboard = decode_json(slurp_file("$root/monitoring/grafana.json"));
for my $panel (@{ $dashboard->{panels} })
{
	for my $target (@{ $panel->{targets} })
	{
		is(unknown($target->{expr}), '', "the dashboard's $panel->{title}: there are such metrics");
		my %labels = map { $_ => 1 } 'instance',
			map { my ($type, @labels) = @$_;
				@labels } @metrics{ grep { $metrics{$_} } $target->{expr} =~ /\b(gpusort_[a-z_]+)/g };
		is(join(' ', grep { !$labels{$_} } $target->{legendFormat} =~ /\{\{(\w+)\}\}/g, $target->{expr} =~ /by \((\w+)\)/),
			'', "the dashboard's $panel->{title}: and such labels");
	}
}
my @alerts = slurp_file("$root/doc/monitoring.md") =~ /^\| [^|`]+ \| (`(?:[^|]|\\\|)+`[^|]*) \|/mg;
cmp_ok(scalar @alerts, '>=', 8, 'doc/monitoring.md has alerts');
is(unknown($_), '', "an alert: $_") for map { /`([^`]+)`/g } @alerts;

# --- postgres_exporter -------------------------------------------------------------------------

SKIP:
{
	my ($program) = grep { -x } map { ("$_/prometheus-postgres-exporter", "$_/postgres_exporter") } File::Spec->path;
	skip 'prometheus-postgres-exporter is not installed', 2 unless defined $program;
	my $port = PostgreSQL::Test::Cluster::get_free_port();
	local $ENV{DATA_SOURCE_NAME} = 'user=exporter dbname=postgres sslmode=disable host=' . $node->host . ' port='
		. $node->port;
	my $log = '';
	my $exporter = IPC::Run::start([ $program, "--web.listen-address=127.0.0.1:$port",
		"--extend.query-path=$root/monitoring/queries.yaml" ], '<', \undef, '&>', \$log);
	my $response;
	wait_until(sub {
		$exporter->pump_nb;
		$response = HTTP::Tiny->new(timeout => 20)->get("http://127.0.0.1:$port/metrics");
		return $response->{success} && $response->{content} =~ /^gpusort_/m;
	});
	$exporter->kill_kill;
	my %given = map { $_ => 1 } $response->{content} =~ /^(gpusort_\w+)/mg;
	is(join(' ', grep { !$given{$_} && !/^gpusort_fallback/ } sort keys %metrics), '',
		'postgres_exporter gives every metric') or diag $log;
	like($response->{content}, qr/^gpusort_service_ready\{[^}]*\} 1$/m, 'and its value');
}
$node->stop;

done_testing;
