# SuitesGenerated - suites whose rows their kits' own generators make, for bench/workloads: TPC-H, TPC-DS, SSB.
#
# SUITE_tables makes the tables of $scale in $database, SUITE_queries writes the queries.
package SuitesGenerated;

use strict;
use warnings;

use Exporter qw(import);
use File::Basename qw(basename);
use File::Path qw(make_path);
use WorkloadMaker;

our @EXPORT = qw(tpch_tables tpch_queries tpcds_tables tpcds_queries ssb_tables ssb_queries);

# --- TPC-H -------------------------------------------------------------------------------------

# Runs a generator of dbgen's kind for [letter of the table, in so many parts], ...; each in a folder of its own.
# Returns [table, file], ...
sub dbgen
{
	my ($names, @wanted) = @_;
	my ($program, @commands) = ("$kit/dbgen/dbgen");

	-x $program or die "$program is not there: build the kit as its README says\n";
	for (@wanted)
	{
		my ($letter, $parts) = @$_;
		for my $part (1 .. $parts)
		{
			my $into = "$scratch/$letter-$part";
			make_path($into);
			push @commands, "cd $into && DSS_PATH=. DSS_CONFIG=" . shell_quote("$kit/dbgen") . ' ' . shell_quote($program)
				. " -q -f -b " . shell_quote("$kit/dbgen/dists.dss") . " -s $scale -T $letter"
					. ($parts > 1 ? " -C $parts -S $part" : '') . ' </dev/null >log 2>&1 || { cat log >&2; false; }';
		}
	}
	together(@commands);
	my @files = map { my ($table) = m{([a-z]+)\.tbl}; [ $names->{$table} // $table, $_ ] } glob "$scratch/*/*.tbl*";
	for my $pair (@files)
	{
		# some end a line with a separator, as if there were one more column
		open my $in, '<', $pair->[1] or die "$pair->[1]: $!\n";
		my $first = <$in> // '';
		my ($columns) = sql("SELECT count(*) FROM pg_attribute WHERE attrelid = '$pair->[0]'::regclass AND attnum > 0");
		system('sed', '-i', 's/|$//', $pair->[1]) == 0 or die "sed failed\n" if ($first =~ tr/|//) == $columns;
	}
	return @files;
}

sub tpch_tables
{
	sql(slurp("$kit/dbgen/dss.ddl"));
	# orders and lineitem come together, as do part and partsupp; nation and region
	my $parts = $scale >= 0.1 ? $option{j} : 1;
	load("DELIMITER '|'", dbgen({}, [ o => $parts ], [ p => $parts ], [ c => $parts ], [ s => 1 ], [ l => 1 ]));
	return if $option{i} eq 'none';

	# the kit's keys are a script for another server: its statements, one by one
	my $keys = slurp("$kit/dbgen/dss.ri");
	$keys =~ s/^\s*--.*\n//mg;
	$keys =~ s/\bTPCD\.//g;
	my @keys = grep { /^\s*ALTER\s+TABLE/i } split /;/, $keys;
	s/FOREIGN\s+KEY\s+\w+\s*\(/FOREIGN KEY (/i for @keys;
	alter(0, grep { /PRIMARY\s+KEY/i } @keys);
	return if $option{i} eq 'primary';
	foreign_keys(grep { /FOREIGN\s+KEY/i } @keys);
	index_foreign_keys();
	return;
}

sub tpch_queries
{
	local $ENV{DSS_QUERY} = "$kit/dbgen/queries";
	local $ENV{DSS_CONFIG} = "$kit/dbgen";

	for my $number (1 .. 22)
	{
		my $query = `cd @{[ shell_quote("$kit/dbgen") ]} && ./qgen -d -s $scale $number`;
		die "qgen failed\n" if $? || $query !~ /select/i;
		write_query(sprintf('q%02d', $number), dialect($query =~ s/^\s*--.*\n//mgr));
	}
	return;
}

# --- TPC-DS ------------------------------------------------------------------------------------

sub tpcds_tables
{
	die "TPC-DS: the scale is a whole number\n" if $scale !~ /^\d+$/;
	-x "$kit/tools/dsdgen" or die "$kit/tools/dsdgen is not there: build the kit as its README says\n";
	my $ddl = slurp("$kit/tools/tpcds.sql");
	$ddl =~ s/,\s*primary\s+key\s*\([^()]*\)//gi if $option{i} eq 'none';
	sql($ddl);
	my @tables = $ddl =~ /create\s+table\s+(\w+)/gi;

	# Returns are made with their sales.  Each table is one process's work, large ones are several's.
	make_path("$scratch/rows");
	my @commands;
	for my $table (sort { ($a !~ /_sales|inventory/) <=> ($b !~ /_sales|inventory/) } grep { !/_returns$/ } @tables)
	{
		my $parts = $table =~ /_sales$|^inventory$/ ? $option{j} : 1;
		push @commands, map {
			'cd ' . shell_quote("$kit/tools") . " && ./dsdgen -SCALE $scale -DIR " . shell_quote("$scratch/rows")
				. " -TABLE $table -TERMINATE N -FORCE Y -QUIET Y"
				. ($parts > 1 ? " -PARALLEL $parts -CHILD $_" : '')
					. " </dev/null >$scratch/log-$table-$_ 2>&1 || { cat $scratch/log-$table-$_ >&2; false; }"
		} 1 .. $parts;
	}
	together(@commands);
	load("DELIMITER '|', NULL '', ENCODING 'LATIN1'", map { my $file = $_;
		(basename($file) =~ /^([a-z_]+?)(?:_\d+_\d+)?\.dat$/) ? [ $1, $file ] : () } glob "$scratch/rows/*.dat");
	return if $option{i} ne 'all';
	foreign_keys(map { trim($_) } grep { /alter\s+table/i } split /;/, slurp("$kit/tools/tpcds_ri.sql") =~ s/--.*//gr);
	index_foreign_keys(qw(date_dim item customer));
	return;
}

sub tpcds_queries
{
	my $into = "$scratch/queries";
	make_path($into);
	system('cd ' . shell_quote("$kit/tools")
		. " && ./dsqgen -DIRECTORY ../query_templates -INPUT ../query_templates/templates.lst -QUALIFY Y -SCALE "
		. int($scale < 1 ? 1 : $scale)
		. " -DIALECT netezza -OUTPUT_DIR " . shell_quote($into) . ' >' . shell_quote("$into/log") . ' 2>&1') == 0
		or die "dsqgen failed: " . slurp("$into/log");
	my %query;
	for (split /^-- start query/m, slurp("$into/query_0.sql"))
	{
		$query{$1} = $_ if s/^.*using template query(\d+)\.tpl\n//;
	}
	write_statements(sprintf('q%02d', $_), dialect($query{$_} =~ s/^\s*--.*\n//mgr)) for sort { $a <=> $b } keys %query;
	return;
}

# --- Star Schema Benchmark ---------------------------------------------------------------------

sub ssb_tables
{
	my $ddl = slurp("$kit/scripts/pg_schema.sql");
	$ddl =~ s/,\s*primary\s+key\s*\([^()]*\)//gi if $option{i} eq 'none';
	sql($ddl);
	my $parts = $scale >= 0.1 ? $option{j} : 1;
	load("DELIMITER '|'", dbgen({ date => 'dim_date' }, [ l => $parts ], map { [ $_ => 1 ] } qw(p c s d)));
	return if $option{i} ne 'all';
	foreign_keys('ALTER TABLE lineorder ADD FOREIGN KEY (lo_custkey) REFERENCES customer',
		'ALTER TABLE lineorder ADD FOREIGN KEY (lo_partkey) REFERENCES part',
		'ALTER TABLE lineorder ADD FOREIGN KEY (lo_suppkey) REFERENCES supplier',
			'ALTER TABLE lineorder ADD FOREIGN KEY (lo_orderdate) REFERENCES dim_date',
		'ALTER TABLE lineorder ADD FOREIGN KEY (lo_commitdate) REFERENCES dim_date');
	return;
}

sub ssb_queries
{
	write_query(basename($_, '.sql') =~ s/^q?/q/r, slurp($_)) for glob "$kit/queries/*.sql";
	return;
}

1;
