# Rows that all processes form, of each type that PostgreSQL has: text, binary and both at once, in several encodings,
# by both protocols and by COPY, every byte is that of gpusort off.  What output functions say arrives as it is said.
use strict;
use warnings;

use File::Temp qw(tempdir);
use GpuSortNode;
use IPC::Run ();
use Test::More;

# Two values of each type.
my %values = (
	bool => [ 't', 'f' ], bytea => [ '\xdeadbeef', '' ], char => [ 'c', '\\\\351' ], name => [ 'na"me', '' ],
	int8 => [ '9223372036854775807', '-9223372036854775808' ], int2 => [ '32767', '-32768' ],
	int2vector => [ '1 2 3', '' ], int4 => [ '2147483647', '-2147483648' ], text => [ 'ä "text"', '' ],
	oid => [ '4294967295', '0' ], tid => [ '(4294967295,65535)', '(0,0)' ], xid => [ '4294967295', '3' ],
	cid => [ '4294967295', '0' ], oidvector => [ '1 2 3', '' ], json => [ '{"ä": [1, null]}', '""' ],
	jsonb => [ '{"ä": [1, null], "b": 1.50}', '""' ], jsonpath => [ '$.a[*] ? (@ > 1)', 'strict $' ],
	xml => [ '<a b="ä">c</a>', '' ], point => [ '(1.5,-2)', '(NaN,Infinity)' ],
	lseg => [ '[(0,0),(1,1)]', '[(2,2),(2,2)]' ],
	path => [ '[(0,0),(1,1)]', '((0,0),(1,1),(2,0))' ], box => [ '(1,1),(0,0)', '(0,0),(0,0)' ],
	polygon => [ '((0,0),(1,1),(2,0))', '((1,1))' ], line => [ '{1,2,3}', '{0,-1,0}' ],
	circle => [ '<(1,2),3>', '<(0,0),0>' ], float4 => [ '0.1', 'NaN' ], float8 => [ '-0', '1e-300' ],
	money => [ '-12.34', '92233720368547758.07' ], macaddr => [ '08:00:2b:01:02:03', '00:00:00:00:00:00' ],
	macaddr8 => [ '08:00:2b:01:02:03:04:05', '00:00:00:00:00:00:00:00' ], inet => [ '10.1.2.3/8', '::1' ],
	cidr => [ '10.0.0.0/8', '2001:db8::/32' ], aclitem => [ 'postgres=r*w/postgres', '=r/postgres' ],
	bpchar => [ 'ä ', '' ], varchar => [ 'ä', '' ], date => [ '2020-02-29', 'infinity' ],
	time => [ '10:11:12.345678', '24:00:00' ], timestamp => [ '2020-02-29 10:11:12.345678', '-infinity' ],
	timestamptz => [ '2020-02-29 10:11:12.345678+01', '4713-01-01 00:00:00+00 BC' ],
	interval => [ '1 year -2 months 3 days 04:05:06.7', '0' ], timetz => [ '10:11:12.345678+05:30', '24:00:00-12' ],
	bit => [ '1', '0' ], varbit => [ '1011', '' ], numeric => [ '-123456789012345678901234567890.12300', 'NaN' ],
	refcursor => [ 'ä', '' ],
	uuid => [ 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '00000000-0000-0000-0000-000000000000' ],
	pg_lsn => [ '16/B374D848', '0/0' ], tsvector => [ q{'ä':1A,2 'b c':3B}, '' ],
	tsquery => [ q{'ä':*A & !( b | c )}, '' ],
	txid_snapshot => [ '10:20:10,14', '10:10:' ], pg_snapshot => [ '10:20:10,14', '10:10:' ],
	xid8 => [ '18446744073709551615', '0' ], oid8 => [ '18446744073709551615', '0' ],
	regproc => [ 'now', '1' ], regprocedure => [ 'now()', '1' ], regoper => [ '||/', '1' ],
	regoperator => [ '+(int4,int4)', '1' ], regclass => [ 'types_of', '1' ], regtype => [ 'int4[]', '1' ],
	regcollation => [ '"C"', '1' ], regconfig => [ 'english', '1' ], regdictionary => [ 'simple', '1' ],
	regnamespace => [ 'pg_catalog', '1' ], regrole => [ 'postgres', '1' ], regdatabase => [ 'postgres', '1' ],
	int4range => [ '[1,5)', 'empty' ], int8range => [ '[1,5)', '(,)' ], numrange => [ '[1.5,5.50]', '(,1]' ],
	tsrange => [ '[2020-01-01,2021-01-01)', '[2020-01-01,infinity]' ],
	tstzrange => [ '[2020-01-01 00:00+00,)', 'empty' ],
	daterange => [ '[2020-01-01,2020-02-01)', '(,)' ], int4multirange => [ '{[1,5),[7,9)}', '{}' ],
	int8multirange => [ '{[1,5),[7,9)}', '{}' ], nummultirange => [ '{[1.5,5.50],(7,)}', '{}' ],
	tsmultirange => [ '{[2020-01-01,2021-01-01)}', '{}' ], tstzmultirange => [ '{[2020-01-01 00:00+00,)}', '{}' ],
	datemultirange => [ '{[2020-01-01,2020-02-01)}', '{}' ],
	# types of the test's own
	mood => [ 'ä', 'low' ],
	small => [ '1', '9' ], pair => [ '(1,"a, ""ä""")', '(,)' ], list => [ '{1,NULL,3}', '{}' ],
	of_pair => [ '(2,ä)', '(3,)' ], nested => [ '("(1,ä)","{""(2,b)"",NULL}")', '(,)' ],
	float_range => [ '[0.5,1)', 'empty' ], float_multirange => [ '{[0.5,1)}', '{}' ]);
# these have no input
my %no_values = map { $_ => 1 } qw(pg_node_tree pg_ndistinct pg_dependencies pg_mcv_list pg_brin_bloom_summary
	pg_brin_minmax_multi_summary pg_ddl_command gtsvector);

my $node = GpuSortNode->new('main');
$node->init(conf => [ 'max_parallel_workers_per_gather = 2', 'max_parallel_workers = 8', 'parallel_setup_cost = 0',
	'parallel_tuple_cost = 0', 'min_parallel_table_scan_size = 0', 'gpusort.force = on', 'enable_hashagg = off' ]);
$node->start;
$node->wait_service;
$node->safe_psql('postgres', q{
	CREATE EXTENSION gpusort;
	CREATE TABLE types_of ();
	CREATE TYPE mood AS ENUM ('low', 'ä');
	CREATE DOMAIN small AS int2 NOT NULL CHECK (value < 10);
	CREATE TYPE pair AS (a int, b text);
	CREATE DOMAIN list AS int[];
	CREATE DOMAIN of_pair AS pair CHECK ((value).a > 1);
	CREATE TYPE nested AS (a pair, b pair[]);
	CREATE TYPE float_range AS RANGE (subtype = float8, multirange_type_name = float_multirange)});

# name, and whether it has a binary form
my @types = map { [ split /\|/ ] } split /\n/, $node->safe_psql('postgres',
	q{SELECT typname, typsend <> 0 FROM pg_type WHERE typtype IN ('b', 'e', 'r', 'm', 'd', 'c') AND typisdefined
		AND typcategory <> 'A' AND NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = typrelid AND relkind <> 'c')
		AND typnamespace IN ('pg_catalog'::regnamespace, 'public'::regnamespace) ORDER BY typname});
push @types, [ 'list', 't' ];
is(join(' ', grep { !$values{$_} && !$no_values{$_} } map { $_->[0] } @types), '', 'values of all types are here');
my $has_xml = $node->psql('postgres', q{SELECT '<a/>'::xml}, stderr => \my $refused) == 0;
@types = grep { $values{ $_->[0] } && ($_->[0] ne 'xml' || $has_xml) } @types;
cmp_ok(scalar @types, '>', 70, 'types');

# A column of each and one of its arrays, those without a binary form apart; NULLs come in different rows.
my (@columns, @only_text);
my $number = 0;
my @expressions;
for my $type (@types)
{
	my ($name, $has_binary) = @$type;
	my $quoted = qq{"$name"};
	my @literals = map { my $value = $_; $value =~ s/'/''/g; "'$value'::$quoted" } @{ $values{$name} };

	$number++;
	my $value = "CASE (i + $number) % 5 WHEN 0 THEN NULL WHEN 1 THEN $literals[1] ELSE $literals[0] END";
	# a domain's NOT NULL is not met by arrays' elements
	my $array = "CASE (i + $number) % 7 WHEN 0 THEN NULL WHEN 1 THEN '{}' WHEN 2 THEN ARRAY[ARRAY[$literals[0]], "
		. "ARRAY[$literals[1]]] ELSE ARRAY[$literals[1], $literals[0]] END";
	$value =~ s/NULL/$literals[0]/ if $name eq 'small';
	push @expressions, "$value AS \"c_$name\"", $name eq 'list' ? () : "$array AS \"a_$name\"";
	push @{ $has_binary eq 't' ? \@columns : \@only_text }, "\"c_$name\"", $name eq 'list' ? () : "\"a_$name\"";
}
my %long = (external => q{repeat('ä', i % 7 * 900)}, compressed => q{repeat('ä ' || i, i % 5 * 4000)});
push @expressions, map { "$long{$_} AS $_" } sort keys %long;
my $from = 'SELECT i AS id, i * 7919 % 211 AS g, ' . join(', ', @expressions) . ' FROM generate_series(1, 500) i';
$node->safe_psql('postgres', "CREATE TABLE t AS $from WITH NO DATA; ALTER TABLE t ALTER external SET STORAGE external; "
	. "INSERT INTO t $from; ANALYZE t");
push @columns, sort keys %long;
my $binary_columns = join ', ', @columns;
my $all_columns = join ', ', @columns, @only_text;

sub by_ranges { return "SELECT $_[0], sum(id) OVER (PARTITION BY g ORDER BY id) FROM t ORDER BY g, id" }

sub formed
{
	return $node->ask('SELECT formed_rows FROM gpusort_stats');
}

# An answer with gpusort, and PostgreSQL's of one process, are the same to the byte, and workers have formed rows.
sub same
{
	my ($wire, $what, $ask) = @_;
	$wire->simple('SET gpusort.enable = off; SET max_parallel_workers_per_gather = 0');
	my $native = $ask->();
	$wire->simple('SET gpusort.enable = on; RESET max_parallel_workers_per_gather');
	my $before = formed();
	my $ours = $ask->();

	ok($ours->{bytes} eq $native->{bytes}, "$what: the same bytes") or diag "rows $ours->{rows} $native->{rows}, "
		. ($ours->{error} // '') . ', ' . ($native->{error} // '');
	is($native->{error}, undef, 'no error');
	cmp_ok(formed(), '>', $before, 'workers have formed rows');
	return;
}

my @encodings = ('UTF8', 'LATIN1', 'LATIN9', 'WIN1252', 'GB18030', 'EUC_JIS_2004', 'SQL_ASCII');
for my $encoding (@encodings)
{
	my $wire = $node->wire(client_encoding => $encoding);

	same($wire, "$encoding, simple", sub { $wire->simple(by_ranges($all_columns)) });
	same($wire, "$encoding, binary", sub { $wire->extended(by_ranges($binary_columns), formats => [1]) });
	same($wire, "$encoding, text and rows", sub { $wire->extended(by_ranges('id, t, ARRAY[t]')) });
	if ($encoding eq 'UTF8' || $encoding eq 'LATIN1')
	{
		# one format for each column, and the other way round
		for my $first (0, 1)
		{
			my @formats = (map({ ($_ + $first) % 2 } 0 .. $#columns), 1 - $first);
			same($wire, "$encoding, formats from $first on",
				sub { $wire->extended(by_ranges($binary_columns), formats => \@formats) });
		}
		for my $options ('', '(FORMAT csv, FORCE_QUOTE *)', '(FORMAT binary)')
		{
			my $query = by_ranges($options =~ /binary/ ? $binary_columns : $all_columns);

			same($wire, "$encoding, COPY $options", sub { $wire->simple("COPY ($query) TO STDOUT $options") });
		}
		same($wire, "$encoding, nothing above the sort",
			sub { $wire->simple("SELECT $all_columns FROM t ORDER BY g, id") });
	}
	$wire->close;
}

# --- what output functions say --------------------------------------------------------------------

my $directory = tempdir(CLEANUP => 1);
chmod 0755, $directory;
chomp(my $include = `@{[ $ENV{PG_CONFIG} // 'pg_config' ]} --includedir-server`);
SKIP:
{
	skip 'no gcc, or no headers of the server', 1
		unless eval { IPC::Run::run([ 'gcc', '-O2', '-shared', '-fPIC', "-I$include", '-o', "$directory/loud_type.so",
			'test/lib/loud_type.c' ]) };
	$node->safe_psql('postgres', join ';', map { (
		"CREATE TYPE $_",
		"CREATE FUNCTION ${_}_in(cstring) RETURNS $_ LANGUAGE internal STRICT IMMUTABLE PARALLEL SAFE AS 'int4in'",
		"CREATE FUNCTION ${_}_out($_) RETURNS cstring LANGUAGE c STRICT IMMUTABLE PARALLEL SAFE "
			. "AS '$directory/loud_type'",
		"CREATE TYPE $_ (input = ${_}_in, output = ${_}_out, passedbyvalue, internallength = 4, alignment = int4)",
		"CREATE CAST (int AS $_) WITHOUT FUNCTION") } 'loud', 'failing');
	$node->safe_psql('postgres',
		q{CREATE TABLE many AS SELECT i AS id, i * 7919 % 8009 AS g, repeat('x', 200) AS v }
			. q{FROM generate_series(1, 12000) i; ANALYZE many});
	for my $encoding ('UTF8', 'LATIN1', 'EUC_JIS_2004')
	{
		my $wire = $node->wire(client_encoding => $encoding);
		my $sum = 'sum(id) OVER (PARTITION BY g ORDER BY id) FROM many ORDER BY g, id';
		my @right;

		# the leader forms the rows, and workers do
		for my $setting ('gpusort.enable = off', 'gpusort.parallel_output = off', 'gpusort.enable = on')
		{
			my $select = "SELECT id::loud AS u, v, $sum";

			$wire->simple("RESET ALL; SET $setting");
			my $before = formed();
			my @answers = map { $wire->simple($_) } $select, "COPY ($select) TO STDOUT", $select =~ s/loud/failing/r;
			my $some = formed() - $before;
			# which comes before its row, or when a worker has formed that
			my ($notice) = $answers[0]{bytes} =~ /N NOTICE (.*)\n/;
			my @said = ($notice, $answers[2]{error}, map { $answers[$_]{bytes} =~ s/N NOTICE .*\n//r } 0, 1);

			@right = @said if !@right;
			ok(defined $notice && $notice eq $right[0], "$encoding, $setting: the same notice");
			is($said[1], $right[1], 'the same error');
			ok($said[$_] eq $right[$_], 'the same bytes') for 2, 3;
			is($answers[$_]{error}, undef, 'no error') for 0, 1;
			cmp_ok($some, '>', 0, 'workers have formed rows') if $setting eq 'gpusort.enable = on';
		}
		$wire->close;
	}
}
$node->stop;

done_testing;
