# SuitesMadeUp - suites whose rows SQL makes up, for bench/workloads: our own star, and ClickBench, H2O.ai's and the
# Join Order Benchmark, of whose kits only schemas and queries are used.
#
# SUITE_tables makes the tables of $scale in $database, SUITE_queries writes the queries.
package SuitesMadeUp;

use strict;
use warnings;

use Exporter qw(import);
use WorkloadMaker;

our @EXPORT = qw(star_tables star_queries clickbench_tables clickbench_queries h2o_tables h2o_queries
	job_tables job_queries);

# --- star --------------------------------------------------------------------------------------

sub star_tables
{
	my $text = suite_file('star.sql');

	$text =~ s/\bgenerate_series\(1, 3000000\)/'generate_series(1, ' . int(3e6 * $scale) . ')'/e or die;
	$text =~ s/\bgenerate_series\(0, 2999\)/'generate_series(0, ' . int(3000 * $scale) . ' - 1)'/e or die;
	sql($text);
	sql("ALTER DATABASE \"$database\" SET search_path = star, public");
	return;
}

sub star_queries
{
	my $number = 0;

	write_query(sprintf('q%02d', ++$number), $_) for grep { /^(?:SELECT|WITH)\b/mi } split /\n\s*\n/,
		suite_file('star-queries.sql');
	return;
}

# --- ClickBench --------------------------------------------------------------------------------

# What columns have that is more than few values; n is the row's number.  Visits are bursts of rows of one
# user; counters, regions, phrases and pages are skewed, and many strings are empty.
sub clickbench_tables
{
	my $rows = int(1e6 * $scale);
	my ($pages, $phrases, $users) = map { 1 + int($rows * $_) } 0.25, 0.05, 0.15;
	my $visit = '(n / 8)';
	# the user, counter and hashes that queries look for are some rows'
	my $queries = slurp("$kit/postgresql/queries.sql");
	my ($user, $counter, $url_hash, $referer_hash) = map { $queries =~ /\b$_\s*=\s*(-?\d+)/ ? $1
		: 1 } qw(UserID CounterID URLHash RefererHash);
	my %expression = (
		watchid => 'hashint8extended(n, 1)',
		title => "CASE WHEN made.u(n, 2) < 0.15 THEN '' ELSE initcap(made.words(made.skew(n, 3, $pages, 2), 3, 4)) || CASE "
			. "WHEN made.u(n, 3) < 0.02 THEN ' - Google' ELSE ' | site ' || made.skew(n, 4, 500, 3) END END",
		eventtime => "timestamp '2013-07-01' + made.u($visit, 5) * interval '31 days' + (n % 8) * interval '19 seconds'",
		eventdate => "(timestamp '2013-07-01' + made.u($visit, "
			. "5) * interval '31 days' + (n % 8) * interval '19 seconds')::date",
		counterid => "CASE WHEN made.u($visit, 6) < 0.07 THEN $counter ELSE made.skew($visit, 7, 6000, 4) END",
		clientip => "hashint8(made.skew($visit, 8, $users, 2))",
		regionid => "made.skew($visit, 9, 4000, 3)",
		userid => "CASE WHEN made.u($visit, 10) < 0.0001 THEN $user "
			. "ELSE abs(hashint8extended(made.skew($visit, 8, $users, 2), 11)) END",
		url => "made.url(made.skew(n, 12, $pages, 2), 12)",
		referer => "CASE WHEN made.u(n, 13) < 0.2 THEN '' ELSE made.url(made.skew(n, 14, $pages, 2), 14) END",
		urlhash => "CASE WHEN made.u(n, 15) < 0.004 THEN $url_hash "
			. "ELSE hashint8extended(made.skew(n, 12, $pages, 2), 15) END",
		refererhash => "CASE WHEN made.u(n, 16) < 0.01 THEN $referer_hash "
			. "ELSE hashint8extended(made.skew(n, 14, $pages, 2), 16) END",
		resolutionwidth => '(ARRAY[0, 1366, 1920, 1280, 1024, 1440, 1600, 1680, 320, 768])[made.skew(' . $visit
			. ', 17, 10, 1.5)]',
		resolutionheight => '(ARRAY[0, 768, 1080, 800, 1024, 900, 600, 1050, 480, 720])[made.skew(' . $visit
			. ', 17, 10, 1.5)]',
		mobilephonemodel => "CASE WHEN made.u($visit, 18) < 0.94 THEN '' "
			. "ELSE (ARRAY['iPhone', 'iPad', 'Galaxy', 'Lumia', 'Nexus'])[made.skew($visit, 19, 5, 2)] || CASE "
			. "WHEN made.u($visit, 20) < 0.5 THEN '' ELSE ' ' || made.skew($visit, 21, 40, 2) END END",
		mobilephone => "CASE WHEN made.u($visit, 18) < 0.94 THEN 0 ELSE made.skew($visit, 19, 5, 2) END",
		searchphrase => "CASE WHEN made.u(n, 22) < 0.87 THEN '' ELSE made.words(made.skew(n, 23, $phrases, 2), 23, 3) END",
		searchengineid => "CASE WHEN made.u(n, 22) < 0.87 THEN 0 ELSE made.skew(n, 24, 40, 3) END",
		advengineid => 'CASE WHEN made.u(n, 25) < 0.97 THEN 0 ELSE made.skew(n, 26, 20, 2) END',
		traficsourceid => 'made.skew(n, 27, 9, 2) - 2',
		clienteventtime => "timestamp '2013-07-01' + made.u($visit, "
			. "5) * interval '31 days' + (n % 8) * interval '19 seconds' + made.u($visit, 28) * interval '1 hour'",
		localeventtime => "timestamp '2013-07-01' + made.u($visit, 5) * interval '31 days' + (n % 8) * interval '19 seconds' "
			. "+ interval '2 hours'",
		windowclientwidth => "made.skew($visit, 29, 1900, 0.7)", windowclientheight => "made.skew($visit, 30, 1000, 0.7)",
		isrefresh => '(made.u(n, 31) < 0.1)::int', islink => '(made.u(n, 32) < 0.08)::int',
			isdownload => '(made.u(n, 33) < 0.01)::int',
		dontcounthits => '(made.u(n, 34) < 0.05)::int', hid => 'hashint8(n)',
			remoteip => "hashint8(made.skew($visit, 8, $users, 2))", ipnetworkid => "made.skew($visit, 35, 100000, 2)",
		funiqid => "abs(hashint8extended(made.skew($visit, 8, $users, 2), 36))",
			hitcolor => "substr('5TDR', made.skew(n, 37, 4, 3), 1)",
		params => "CASE WHEN made.u(n, 38) < 0.97 THEN '' ELSE 'q=' || made.skew(n, 39, 1000, 2) END",
		browserlanguage => "(ARRAY['ru', 'en', 'uk', 'de', 'tr'])[made.skew($visit, 40, 5, 3)]",
			browsercountry => "(ARRAY['RU', 'UA', 'US', 'DE', 'TR'])[made.skew($visit, 40, 5, 3)]",
		pagecharset => "(ARRAY['utf-8', 'windows-1251'])[made.skew(n, 41, 2, 2)]",
			useragentminor => "made.skew($visit, 42, 60, 2)::text");

	sql(slurp("$kit/postgresql/create.sql"));
	made_up_begin();
	my $seed = 100;
	my @expressions = map {
		my ($name, $type) = @$_;
		$seed++;
		my $default = $type =~ /^(?:text|char)/ ? "''" : $type =~ /^(?:smallint|integer|bigint)/ ? "made.skew(n, $seed, "
			. ($type eq 'smallint' ? 30 : 3000) . ', 4) - 1' : 'NULL';
		'(' . ($expression{$name} // $default) . ")::$type";
	} columns('hits');
	together(make_rows('hits', $rows, 'SELECT ' . join(', ', @expressions)
		. ' FROM generate_series(FIRST::bigint, LAST) n'));
	made_up_end();
	return;
}

sub clickbench_queries
{
	my @queries = grep { /\S/ } split /;\s*\n/, slurp("$kit/postgresql/queries.sql");

	write_query(sprintf('q%02d', $_), $queries[$_]) for 0 .. $#queries;
	return;
}

# --- H2O.ai's group-by and join ----------------------------------------------------------------

# After what the kit's _data/*.R say: g of N rows, with 100 large and N / 100 small groups; x with
# one row for each key of big, and small and medium of few; nine tenths of the keys have a partner.
sub h2o_tables
{
	my ($grouped, $joined) = map { int($_ * $scale) } 5e6, 1e6;
	my ($small, $medium) = map { $_ > 10 ? int($_) : 10 } $joined / 1e6, $joined / 1e3;
	my $other = sub { my ($key, $n) = @_; return "($key + CASE WHEN $key > 0.9 * $n THEN " . int(0.1 * $n + 0.5)
		. ' ELSE 0 END)' };
	my $any = sub { my ($n, $seed) = @_; return "made.skew(n, $seed, $n, 1)" };
	my $each = sub { my ($n, $prime) = @_; return "(1 + n * $prime % $n)" };
	my $value = sub { my ($seed) = @_; return "round((100 * made.u(n, $seed))::numeric, 6)::float8" };
	my $rows_of = sub {
		my ($table, $rows, $value_seed, @keys) = @_;
		return make_rows($table, $rows, 'SELECT '
			. join(', ', (map { "id$_" } 1 .. @keys), (map { "'id' || id$_" } 1 .. @keys), $value->($value_seed))
			. ' FROM generate_series(FIRST::bigint, LAST) n, LATERAL (SELECT '
				. join(', ', map { "$keys[$_ - 1] AS id$_" } 1 .. @keys) . ' OFFSET 0) k');
	};

	sql(<<"SQL");
CREATE TABLE g (id1 text, id2 text, id3 text, id4 int, id5 int, id6 int, v1 int, v2 int, v3 float8);
CREATE TABLE x (id1 int, id2 int, id3 int, id4 text, id5 text, id6 text, v1 float8);
CREATE TABLE small (id1 int, id4 text, v2 float8);
CREATE TABLE medium (id1 int, id2 int, id4 text, id5 text, v2 float8);
CREATE TABLE big (id1 int, id2 int, id3 int, id4 text, id5 text, id6 text, v2 float8);
SQL
	made_up_begin();
	my $groups = int($grouped / 100) || 1;
	together(
		make_rows('g', $grouped,
			"SELECT to_char(made.skew(n, 1, 100, 1), '\"id\"FM000'), to_char(made.skew(n, 2, 100, 1), '\"id\"FM000'), "
			. "to_char(made.skew(n, 3, $groups, 1), '\"id\"FM0000000000'), "
			. "made.skew(n, 4, 100, 1), made.skew(n, 5, 100, 1), made.skew(n, 6, $groups, 1), made.skew(n, 7, 5, 1), "
				. "made.skew(n, 8, 15, 1), " . $value->(9) . ' FROM generate_series(FIRST::bigint, LAST) n'),
		$rows_of->('x', $joined, 10, $any->($small, 11), $any->($medium, 12), $each->($joined, 7919)),
		$rows_of->('small', $small, 13, $other->($each->($small, 7), $small)),
		$rows_of->('medium', $medium, 14, $other->($any->($small, 15), $small), $other->($each->($medium, 7919), $medium)),
		$rows_of->('big', $joined, 16, $other->($any->($small, 17), $small), $other->($any->($medium, 18), $medium),
			$other->($each->($joined, 104729), $joined)));
	made_up_end();
	return;
}

# The statements that the kit's programs for DuckDB time, each of which stands there twice
sub h2o_queries
{
	for my $part ([ groupby => 'g' ], [ join => 'j' ])
	{
		my ($name, $letter) = @$part;
		my ($number, %seen) = (0);
		for my $query (slurp("$kit/duckdb/$name-duckdb.py") =~ /CREATE %s TABLE ans AS (SELECT .*?)" % table_type/g)
		{
			next if $seen{$query}++;
			$query =~ s/\bFROM x\b/FROM g/ if $name eq 'groupby';
			$query =~ s/\bquantile_cont\((\w+), ([\d.]+)\)/percentile_cont($2) WITHIN GROUP (ORDER BY $1)/g;
			$query =~ s/\bunnest\(max\((\w+), (\d+)\)\)/unnest((array_agg($1 ORDER BY $1 DESC))[1:$2]) AS/g;
			write_query(sprintf('%s%02d', $letter, ++$number), $query);
		}
	}
	return;
}

# --- Join Order Benchmark ----------------------------------------------------------------------

my %job_rows = (	# at scale 1: a tenth of what the suite's own tables have
	aka_name => 90e3, aka_title => 36e3, cast_info => 3.6e6, char_name => 314e3, company_name => 23e3,
		complete_cast => 13.5e3, keyword => 13.4e3, movie_companies => 260e3,
	movie_info => 1.48e6, movie_info_idx => 138e3, movie_keyword => 452e3, movie_link => 3e3, name => 416e3,
		person_info => 296e3, title => 250e3);
my %job_keys = (
	movie_id => 'title', linked_movie_id => 'title', episode_of_id => 'title', person_id => 'name',
		person_role_id => 'char_name', company_id => 'company_name', company_type_id => 'company_type',
	kind_id => 'kind_type', info_type_id => 'info_type', keyword_id => 'keyword', link_type_id => 'link_type',
		role_id => 'role_type', subject_id => 'comp_cast_type', status_id => 'comp_cast_type');

sub job_query_files { return grep { /\d+[a-z]\.sql$/ } glob "$kit/*.sql" }

# The strings that queries look for, by table and column, so that rows can have them: what is between
# percent signs of a pattern is part of a value.
sub job_strings
{
	my %strings;

	for my $query (map { slurp($_) } job_query_files())
	{
		my %table;
		$table{$2} = $1 while $query =~ /\b(\w+)\s+AS\s+(\w+)\s*(?=,|\n?\s*WHERE)/gi;
		my $operator = qr/=|!=|(?:NOT\s+)?LIKE|(?:NOT\s+)?IN/i;
		my $string = qr/'(?:[^']|'')*'/;
		while ($query =~ /\b(\w+)\.(\w+)\s*(?:$operator)\s*\(?\s*($string(?:\s*,\s*$string)*)/gi)
		{
			my ($alias, $column, $list) = ($1, $2, $3);
			next if !$table{$alias};
			for my $string ($list =~ /'((?:[^']|'')*)'/g)
			{
				$string =~ s/''/'/g;
				$string =~ s/^%|%$//g;
				$string =~ s/%/5/g;
				$strings{ $table{$alias} }{$column}{$string}++ if $string ne '';
			}
		}
	}
	return \%strings;
}

# Each movie, person and company has many rows or few; a text has one of the strings that the queries ask for in
# one row of four, the first of them far more often than the last.
sub job_tables
{
	my $strings = job_strings();
	my $schema = slurp("$kit/schema.sql");
	my @tables = $schema =~ /CREATE TABLE (\w+)/g;
	my %size = map { $_ => exists $job_rows{$_} ? int($job_rows{$_} * $scale) + 1 : 0 } @tables;

	$schema =~ s/\s+PRIMARY KEY//g if $option{i} eq 'none';
	sql($schema);
	made_up_begin();
	my $array = sub { my ($table, $column) = @_; my $of = $strings->{$table}{$column} // {};
		return map { s/'/''/gr } sort { $of->{$b} <=> $of->{$a} || $a cmp $b } keys %$of };
	# kinds of things: all that are asked for, and others
	for my $table (grep { !$size{$_} } @tables)
	{
		my ($column) = map { $_->[0] } grep { $_->[0] ne 'id' } columns($table);
		my @values = $array->($table, $column);
		push @values, map { "$column $_" } 1 .. ($table eq 'info_type' ? 113 : $table eq 'link_type' ? 18 : 4) - @values;
		$size{$table} = @values;
		sql("INSERT INTO $table VALUES " . join ', ', map { "(${\($_ + 1)}, '$values[$_]')" } 0 .. $#values);
	}
	my ($seed, @commands) = (0);
	for my $table (sort { $job_rows{$b} <=> $job_rows{$a} } grep { $job_rows{$_} } @tables)
	{
		my @expressions;
		for (columns($table))
		{
			my ($name, $type, $not_null) = @$_;
			my ($expression, $nulls) = (undef, $not_null eq 't' ? 0 : 0.3);
			$seed++;
			if ($name eq 'id') { $expression = 'n' }
			elsif ($job_keys{$name}) { $expression = "made.skew(n, $seed, $size{ $job_keys{$name} }, "
				. ($job_keys{$name} =~ /^(?:company_name|keyword)$/ ? 2 : 1.25) . ')' }
			elsif ($name eq 'production_year') { ($expression, $nulls) = ("2016 - made.skew(n, $seed, 110, 2.5)", 0.02) }
			elsif ($name eq 'gender') { $expression = "substr('mf', made.skew(n, $seed, 2, 1.5), 1)" }
			elsif ($name =~ /pcode|phonetic/) { $expression =
				"chr(64 + made.skew(n, $seed, 26, 1.3)) || made.skew(n, -$seed, 666, 1)" }
			elsif ($name eq 'country_code') { ($expression, $nulls) = ("(ARRAY[" . join(', ',
				map { "'$_'" } $array->($table, $name), map { "[c$_]" } 1 .. 80) . "])[made.skew(n, $seed, 60, 3)]", 0.05) }
			elsif ($name eq 'md5sum') { $expression = 'md5(n::text)' }
			elsif ($type eq 'integer') { $expression = "made.skew(n, $seed, " . ($name =~ /nr/ ? 120 : 1000000) . ', 2)' }
			else
			{
				my @values = $array->($table, $name);
				my $words = $type eq 'text' ? "initcap(made.words(hashint8extended(n, $seed), $seed, 3))"
					: "left(made.words(n, $seed, 1), 5)";
				# ratings and numbers of votes are compared as strings
				$words = "CASE n % 2 WHEN 0 THEN to_char(1 + 9 * made.u(n, $seed), 'FM0.0') "
					. "ELSE made.skew(n, $seed, 100000, 3)::text END" if $table eq 'movie_info_idx' && $name eq 'info';
				$expression = @values
					? "CASE WHEN made.u(n, -$seed) < 0.25 THEN (ARRAY[" . join(', ', map { "'$_'" } @values)
						. "])[made.skew(n, $seed, ${\ scalar @values}, 2)]"
						. ($name =~ /^(?:name|title)$/ ? " || CASE WHEN made.u(n, -1000 - $seed) < 0.7 THEN ' ' || $words ELSE '' END"
							: '') . " ELSE $words END"
					: $words;
				$expression = "$expression || CASE WHEN n > ${\ scalar @values} THEN ' ' || n ELSE '' END" if $table eq 'keyword'
					&& $name eq 'keyword';
				$expression = "CASE WHEN n <= ${\ scalar @values} THEN (ARRAY[" . join(', ', map { "'$_'" } @values)
					. "])[n] ELSE $expression END" if $table eq 'keyword' && $name eq 'keyword';
			}
			$expression = "CASE WHEN made.u(n, 2000 + $seed) >= $nulls THEN $expression END" if $nulls;
			push @expressions, "($expression)::$type";
		}
		push @commands, make_rows($table, $size{$table}, 'SELECT ' . join(', ', @expressions)
			. ' FROM generate_series(FIRST, LAST) n');
	}
	together(@commands);
	made_up_end();
	return if $option{i} ne 'all';
	alter(0,
		map { s/^\s*create\s+index\s+(\w+)\s+on\s+(\w+)/CREATE INDEX $1 ON $2/ir } grep { /create\s+index/i } split /;/,
		slurp("$kit/fkindexes.sql"));
	return;
}

sub job_queries
{
	write_query(sprintf('q%02d%s', /(\d+)([a-z])\.sql$/), slurp($_)) for job_query_files();
	return;
}

1;
