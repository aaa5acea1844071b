# WorkloadMaker - what bench/workloads makes databases with: commands that run side by side, rows that are loaded
# or made up, keys and indexes, and queries in PostgreSQL's dialect.
#
# The variables say what is made where, and are set before anything is called:
#   %option         bench/workloads' own
#   $database       where SQL is run
#   $scratch        a folder for files
#   $scale, $kit    of the suite
package WorkloadMaker;

use strict;
use warnings;

use Cwd qw(abs_path);
use Exporter qw(import);
use File::Basename qw(dirname);
use File::Path qw(make_path);

our (%option, $database, $scratch, $scale, $kit);
our @EXPORT = qw(%option $database $scratch $scale $kit
	slurp suite_file shell_quote psql sql together
	load alter make_rows foreign_keys index_foreign_keys vacuum made_up_begin made_up_end columns
	trim dialect write_query write_statements);

my %running;	# process groups of what runs now, and what it is
$SIG{INT} = $SIG{TERM} = sub { kill 'TERM', map { -$_ } keys %running; exit 130 };

# --- running things ----------------------------------------------------------------------------

sub slurp
{
	my ($path) = @_;

	open my $in, '<', $path or die "$path: $!\n";
	local $/;
	return scalar <$in> // '';
}

# A file of bench/suites
sub suite_file { return slurp(dirname(abs_path(__FILE__)) . "/../suites/$_[0]") }

sub shell_quote { return join ' ', map { my $word = $_; $word =~ s/'/'\\''/g; "'$word'" } @_ }

# psql's command line, for the database
sub psql { return shell_quote(qw(psql -X -q -A -t -v ON_ERROR_STOP=1 -d), $database) }

# Runs SQL in one session; returns its lines.
sub sql
{
	my ($text) = @_;
	my $file = "$scratch/statements.sql";

	open my $out, '>', $file or die "$file: $!\n";
	print $out $text;
	close $out or die "$file: $!\n";
	open my $psql, '-|', psql() . " -f '$file'" or die "psql: $!\n";
	chomp(my @lines = <$psql>);
	close $psql or die "psql failed: " . substr($text, 0, 200) . "\n";
	return @lines;
}

# Runs shell commands, at most so many at once; all of them have to succeed.
sub together
{
	my (@commands) = @_;
	my @failed;

	while (@commands || %running)
	{
		while (@commands && keys %running < $option{j})
		{
			my $command = shift @commands;
			my $child = fork // die "fork: $!\n";
			if (!$child)
			{
				@SIG{qw(INT TERM)} = ('DEFAULT') x 2;
				setpgrp;
				exec '/bin/bash', '-o', 'pipefail', '-c', $command;
			}
			$running{$child} = $command;
		}
		my $child = wait;
		push @failed, $running{$child} if $?;
		delete $running{$child};
		@commands = () if @failed;
	}
	die map { "failed: $_\n" } @failed if @failed;
	return;
}

# --- loading -----------------------------------------------------------------------------------

# Loads files of lines into tables, long files in parts: [table, file], ...
sub load
{
	my ($copy_options, @files) = @_;
	my @commands;

	for (sort { -s $b->[1] <=> -s $a->[1] } @files)
	{
		my ($table, $file) = @$_;
		my $parts = 1 + int((-s $file) / 64e6);
		push @commands, map { "split -n l/$_/$parts " . shell_quote($file) . ' | ' . psql() . ' -c '
			. shell_quote("COPY $table FROM STDIN ($copy_options)") } 1 .. $parts;
	}
	together(@commands);
	return;
}

# Statements, several at once: those of one table one after the other, so that none waits for another's lock.
# Those that fail are told of, if that is allowed.
sub alter
{
	my ($may_fail, @statements) = @_;
	my (%of, @order);

	for (@statements)
	{
		my ($table) = /^\s*(?:ALTER\s+TABLE|CREATE\s+INDEX\s+(?:\w+\s+)?ON)\s+(\w+)/i or die "which table? $_\n";
		push @order, $table if !$of{ lc $table };
		push @{ $of{ lc $table } }, $_;
	}
	together(map { my $table = lc; join(' ', psql(), '-v', 'ON_ERROR_STOP=' . ($may_fail ? 0 : 1),
		map({ ('-c', shell_quote($_)) } @{ $of{$table} })) . ($may_fail ? ' || true' : '') } @order);
	return;
}

# Inserts rows made up by SQL, in as many sessions as there are jobs: FIRST and LAST in $select become the
# ends of each one's part.
sub make_rows
{
	my ($table, $rows, $select) = @_;
	my $parts = $rows < 20000 ? 1 : $option{j};

	return map {
		my $statement = "INSERT INTO $table $select";
		my ($first, $last) = (int($rows * ($_ - 1) / $parts) + 1, int($rows * $_ / $parts));
		$statement =~ s/\bFIRST\b/$first/g;
		$statement =~ s/\bLAST\b/$last/g;
		psql() . ' -c ' . shell_quote($statement)
	} 1 .. $parts;
}

# Indexes on the columns of foreign keys that reference one of these tables (all, if none is named) and
# that no index begins with.
sub index_foreign_keys
{
	my (@referenced) = @_;
	my $which = @referenced ? 'AND confrelid IN (' . join(', ', map { "'$_'::regclass" } @referenced) . ')' : '';

	alter(0, sql(<<"SQL"));
SELECT DISTINCT format('CREATE INDEX ON %s (%s)', conrelid::regclass,
	(SELECT string_agg(quote_ident(attname), ', ' ORDER BY n)
		FROM unnest(conkey) WITH ORDINALITY u(k, n) JOIN pg_attribute ON attrelid = conrelid AND attnum = k))
FROM pg_constraint c WHERE contype = 'f' $which
	AND NOT EXISTS (SELECT 1 FROM pg_index WHERE indrelid = conrelid AND indkey[0] = conkey[1])
SQL
	return;
}

# Adds foreign keys without having them checked: the rows are the generator's.  One after the other, as
# each locks both tables.
sub foreign_keys
{
	my (@statements) = @_;

	s/\s*;?\s*$/ NOT VALID/ for @statements;
	sql(join '', "\\set ON_ERROR_STOP 0\n", map { "$_;\n" } @statements);
	return;
}

sub vacuum
{
	together(map { psql() . ' -c ' . shell_quote("VACUUM (FREEZE, ANALYZE) $_") }
		sql("SELECT oid::regclass FROM pg_class WHERE relkind = 'r' "
			. "AND relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace) "
			. "ORDER BY relpages DESC"));
	return;
}

# --- made-up rows ------------------------------------------------------------------------------

# Functions of a row's number and a seed, in a schema that is dropped when the rows are there
sub made_up_begin
{
	sql(suite_file('made.sql'));
	return;
}

sub made_up_end
{
	sql('DROP SCHEMA made CASCADE');
	return;
}

# Names and types of a table's columns
sub columns
{
	my ($table) = @_;
	return map { [ split /\|/ ] } sql("SELECT attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute "
		. "WHERE attrelid = '$table'::regclass AND attnum > 0 ORDER BY attnum");
}

# --- queries -----------------------------------------------------------------------------------

# Without comments and blanks at its ends, and without a semicolon
sub trim
{
	my ($query) = @_;

	$query =~ s/^\s*--.*\n//mg;
	$query =~ s/^\s+|[\s;]+$//g;
	return $query;
}

# PostgreSQL's dialect, for what the kits' queries have of others'
sub dialect
{
	my ($query) = @_;

	$query =~ s/([-+])\s*(\d+)\s+days\b/$1 interval '$2 days'/gi;
	$query =~ s/(interval\s+'\d+'\s+(?:day|month|year))\s*\(\d+\)/$1/gi;
	# an alias cannot be part of an expression in ORDER BY
	while ($query =~ /(grouping\s*\([^()]*\)\s*\+\s*grouping\s*\([^()]*\))\s+as\s+(\w+)/gi)
	{
		my ($expression, $alias) = ($1, $2);
		my $at = pos $query;
		$query =~ s/\bcase\s+when\s+$alias\b/case when $expression/gi;
		pos($query) = $at;
	}
	# a subquery in FROM has a name before PostgreSQL 16
	my ($at, $number) = (0, 0);
	while (substr($query, $at) =~ /(\bfrom|\bjoin|,)\s*(?=\()/gi)
	{
		my $follows = $1 eq ',' ? qr/^\s*(?:where|group|order|limit|having)\b/i
			: qr/^\s*(?:$|[;,)]|(?:where|group|order|limit|having|union|intersect|except)\b)/i;
		my $open = $at += $+[0];
		my ($end, $depth) = ($open, 0);
		while ($end < length $query)
		{
			my $char = substr $query, $end++, 1;
			$depth += $char eq '(' ? 1 : $char eq ')' ? -1 : 0;
			last if !$depth;
		}
		substr($query, $end, 0, ' as unnamed' . ++$number) if substr($query, $end) =~ $follows
			&& substr($query, $open + 1) =~ /^[\s(]*(?:select|with)\b/i;
	}
	# LIMIT behind the semicolon; none at all
	$query =~ s/;\s*(limit\s+-?\d+)\s*;?\s*$/\n$1/i;
	$query =~ s/\s*\blimit\s+-1\s*$//i;
	# a view that lives for one query
	if ($query =~ /^\s*create\s+view\s+(\w+)\s*(\([^()]*\))?\s*as\s+(.*?);\s*(select.*?);\s*drop\s+view\s+\w+/si)
	{
		$query = "with $1 " . ($2 // '') . " as (\n$3)\n$4";
	}
	return $query;
}

sub write_query
{
	my ($name, $query) = @_;

	make_path($option{Q});
	open my $out, '>', "$option{Q}/$name.sql" or die "$option{Q}/$name.sql: $!\n";
	print $out trim($query), ";\n";
	close $out or die "$option{Q}/$name.sql: $!\n";
	return;
}

# A query's file, or two for two statements
sub write_statements
{
	my ($name, $text) = @_;
	my @statements = grep { $_ ne '' } map { trim($_) } split /;\s*(?:\n|$)/, $text;

	write_query(@statements > 1 ? $name . chr(ord('a') + $_) : $name, $statements[$_]) for 0 .. $#statements;
	return;
}

1;
