# Rows that a client gets by FETCH leave the server as bytes that were formed before, many of them by all processes
# ahead of the FETCH: each byte of each answer is PostgreSQL's, whatever else is done with the cursor; errors, cancels
# and clients that leave end as they do with PostgreSQL, and no worker is there between two FETCHes.
use strict;
use warnings;

use GpuSortNode;
use Test::More;

my $node = GpuSortNode->new('main');
$node->init(conf => [ 'max_parallel_workers_per_gather = 2', 'max_parallel_workers = 12', 'max_worker_processes = 16',
	'parallel_setup_cost = 0', 'parallel_tuple_cost = 0', 'min_parallel_table_scan_size = 0', 'gpusort.force = on',
	'gpusort.setup_cost = 0', 'gpusort.row_cost = 0', 'enable_hashagg = off' ]);
$node->start;
$node->wait_service;
$node->safe_psql('postgres', qq{
	CREATE EXTENSION gpusort;
	CREATE TYPE mood AS ENUM ('low', 'middle', 'high');
	CREATE TABLE t AS SELECT i AS id, i * 7919 % 809 AS g,
			CASE WHEN i % 7 <> 0 THEN i / 7.0 END AS n, 'Zeile "' || i || '", ä' || repeat('x', i % 50) AS v,
			i / 3.0::float8 AS f8, ARRAY[i, NULL, -i] AS ia, ARRAY['a b', NULL, 'ä"' || i] AS ta,
			int4range(i, i + 5) AS r, '{"k": 1}'::json AS js, decode(md5(i::text), 'hex') AS by,
			i::numeric::money AS m, 'pg_class'::regclass AS rc, 'now'::timestamptz + i * interval '1 h' AS tz,
			i * interval '1 day 1 s' AS iv, (ARRAY['low', 'middle', 'high'])[i % 3 + 1]::mood AS e, NULL::text AS nothing
		FROM generate_series(1, 6000) i;
	CREATE TABLE long AS SELECT i AS id, i % 50 AS g,
		(SELECT string_agg(md5((i * j)::text), '')
			FROM generate_series(1, CASE WHEN i % 50 = 0 THEN 20000 ELSE 3 END) j) AS v
		FROM generate_series(1, 1000) i;
	CREATE TABLE large AS SELECT i AS id, i * 7919::int8 % 80021 AS g, 'row ' || i || repeat('x', i % 30) AS v,
			i / 3.0::float8 AS f8, 'epoch'::timestamptz + i * interval '1 min' AS tz, decode(md5(i::text), 'hex') AS by,
			CASE WHEN i % 7 <> 0 THEN i / 7.0 END AS n
		FROM generate_series(1, 200000) i;
	CREATE TABLE marked AS SELECT i AS id, CASE WHEN i = 90000 THEN '\x{263a}' ELSE 'plain' END AS v
		FROM generate_series(1, 150000) i;
	CREATE TABLE growing AS SELECT i AS id, repeat('wide ', i * i / 2000000) AS v FROM generate_series(1, 20000) i,
		generate_series(1, 12);
	CREATE TABLE empty (LIKE large);
	ANALYZE;
	CREATE FUNCTION fetches(c refcursor, many int) RETURNS text LANGUAGE plpgsql AS \$\$
	DECLARE
		row record;
		all_ids bigint := 0;
	BEGIN
		FOR i IN 1 .. many LOOP
			FETCH c INTO row;
			all_ids := all_ids * 31 % 1000000007 + row.id;
		END LOOP;
		RETURN all_ids || row.v;
	END \$\$;
	CREATE TYPE unsafe;
	CREATE FUNCTION unsafe_in(cstring) RETURNS unsafe LANGUAGE internal STRICT IMMUTABLE PARALLEL SAFE AS 'int4in';
	CREATE FUNCTION unsafe_out(unsafe) RETURNS cstring LANGUAGE internal STRICT IMMUTABLE PARALLEL UNSAFE AS 'int4out';
	CREATE TYPE unsafe (input = unsafe_in, output = unsafe_out, passedbyvalue, internallength = 4, alignment = int4);
	CREATE CAST (int AS unsafe) WITHOUT FUNCTION;
});
my @wires;

sub wire
{
	my $wire = $node->wire(@_);
	push @wires, $wire;
	return $wire;
}

# how many rows workers have formed
sub formed
{
	return $node->ask('SELECT formed_rows FROM gpusort_stats');
}

# The answers to statements, one after another, with gpusort and without, are the same to the byte; each is simple, or
# something to call.  Returns how many rows workers have formed.
sub same
{
	my ($wire, $what, @statements) = @_;
	my %bytes;
	my $formed;

	for my $enable ('off', 'on')
	{
		my $before = formed();

		$wire->simple("SET gpusort.enable = $enable");
		$bytes{$enable} = [ map { ref $_ ? $_->() : $wire->simple($_)->{bytes} } @statements ];
		$wire->simple('ROLLBACK');
		$formed = formed() - $before;
	}
	my @unlike = grep { $bytes{off}[$_] ne $bytes{on}[$_] } 0 .. $#statements;
	ok(!@unlike, "$what: the same bytes") or diag map { my $at = $_;
		"$at: $statements[$at]\n" . join('', map { "\t$_ " . length($bytes{$_}[$at]) . ' ' . substr($bytes{$_}[$at], -100)
			=~ s/[^ -~]/./gr . "\n" } 'off', 'on') } @unlike;
	return $formed;
}

my $plain = 'SELECT * FROM large ORDER BY g, id';
my $all = 'SELECT * FROM t ORDER BY g, id';

sub declare { return "BEGIN; DECLARE c $_[1] CURSOR FOR $_[0]" }

my $wire = wire();
my @to_end = ('FETCH 10000 FROM c') x 21;

# --- rows of one FETCH ----------------------------------------------------------------------------

same($wire, 'all types', declare($all), 'FETCH 1000 FROM c', 'FETCH 3000 FROM c', 'FETCH 3000 FROM c', 'FETCH c');
same($wire, 'binary', declare($all =~ s/\*/id, n, v, f8, ia, ta, by, tz, iv/r, 'BINARY'), ('FETCH 2500 FROM c') x 4);
same($wire, 'all at once', declare($all), 'FETCH ALL FROM c', 'FETCH ALL FROM c', 'FETCH 1000 FROM c');
same($wire, 'several statements', declare($all) . '; FETCH 1000 FROM c; SELECT 1; FETCH 2000 FROM c; '
	. 'FETCH 200 FROM c; MOVE 100 FROM c; FETCH 9000 FROM c; COMMIT');
same($wire, 'an error behind', declare($all) . '; FETCH 1000 FROM c; SELECT 1 / 0; FETCH 1000 FROM c', 'SELECT 1');
same($wire, 'no rows', declare('SELECT * FROM empty ORDER BY g'), 'FETCH 1000 FROM c', 'FETCH ALL FROM c');
same($wire, 'no columns', declare('SELECT FROM t ORDER BY g, id'), 'FETCH 1000 FROM c', 'FETCH ALL FROM c');
same($wire, 'a key that is not shown', declare('SELECT v FROM t ORDER BY g, id'), ('FETCH 2000 FROM c') x 4);
same($wire, 'long rows', declare('SELECT * FROM long ORDER BY g, id'), ('FETCH 300 FROM c') x 4);
same($wire, 'rows too long', declare('SELECT id, CASE WHEN id % 500 = 0 THEN repeat(v, 30) ELSE v END FROM long
	ORDER BY g, id'), ('FETCH 300 FROM c') x 4);
for my $work_mem ('64kB', '1MB')
{
	$wire->simple("SET work_mem = '$work_mem'");
	same($wire, "work_mem $work_mem", declare($plain), 'FETCH 50 FROM c', 'FETCH 30000 FROM c', @to_end);
	same($wire, "work_mem $work_mem, all", declare($plain), 'FETCH 50 FROM c', 'FETCH ALL FROM c');
}
$wire->simple('RESET work_mem');
same($wire, 'an unsafe type', declare('SELECT id::unsafe FROM t ORDER BY g, id'), ('FETCH 1000 FROM c') x 3);
for my $set (q{DateStyle = 'German'}, q{TimeZone = 'Asia/Kolkata'}, q{bytea_output = 'escape'})
{
	same($wire, $set, "SET $set", declare($all), ('FETCH 3000 FROM c') x 3, 'ROLLBACK', 'RESET ' . $set =~ s/ =.*//r);
}

# --- rows ahead -----------------------------------------------------------------------------------

cmp_ok(same($wire, 'to the end', declare($plain), @to_end), '>', 0, 'workers have formed rows');
cmp_ok(same($wire, 'in one query', join('; ', declare($plain), @to_end)), '>', 0, 'formed');
cmp_ok(same($wire, 'binary', declare($plain, 'BINARY'), @to_end), '>', 0, 'formed');
cmp_ok(same($wire, 'NO SCROLL', declare($plain, 'NO SCROLL'), @to_end), '>', 0, 'formed');
cmp_ok(same($wire, 'WITH HOLD', declare($plain) =~ s/FOR/WITH HOLD FOR/r, @to_end[ 0 .. 3 ], 'COMMIT', @to_end,
	'CLOSE c'), '>', 0, 'formed');
cmp_ok(same($wire, 'a key that is not shown', declare('SELECT v, tz FROM large ORDER BY g, id'), @to_end), '>', 0,
	'formed');
cmp_ok(same($wire, 'odd numbers', declare($plain), ('FETCH 7777 FROM c') x 5, ('FETCH 333 FROM c') x 50,
	'FETCH 100 FROM c', 'FETCH 99 FROM c', 'FETCH 101 FROM c', 'FETCH ALL FROM c', 'FETCH ALL FROM c'), '>', 0, 'formed');
for my $order ('id', 'id DESC')
{
	cmp_ok(same($wire, "rows of unlike lengths, $order", declare("SELECT * FROM growing ORDER BY $order"),
		('FETCH 10000 FROM c') x 25), '>', 0, 'formed');
}
is(same($wire, 'few rows', declare($plain), ('FETCH 1000 FROM c') x 15), 0, 'not for few rows');
$wire->simple('SET gpusort.parallel_output = off');
is(same($wire, 'as ever', declare($plain), @to_end), 0, 'nor without parallel_output');
$wire->simple('RESET gpusort.parallel_output; SET gpusort.parallel_cursors = off');
is(same($wire, 'as ever', declare($plain), @to_end), 0, 'nor without parallel_cursors');
$wire->simple('RESET gpusort.parallel_cursors');
is(same($wire, 'what catalogs tell', declare('SELECT id, v, 1259::regclass FROM large ORDER BY g, id'), @to_end), 0,
	'nor of types whose text depends on catalogs');
for my $workers (0, 1)
{
	$wire->simple("SET max_parallel_workers = $workers");
	is(same($wire, "$workers workers", declare($plain), @to_end) > 0, $workers > 0, 'formed if there are workers');
}
$wire->simple('RESET max_parallel_workers');

# what else may be done with a cursor whose rows are ahead
my @ahead = ('FETCH 15000 FROM c') x 3;
for my $other ('FETCH c', 'FETCH 20 FROM c', 'MOVE 1 FROM c', 'MOVE 5000 FROM c', 'MOVE 100000 FROM c',
	'FETCH 0 FROM c', 'FETCH RELATIVE 0 FROM c', 'FETCH RELATIVE 5 FROM c', 'FETCH RELATIVE -5 FROM c',
	'FETCH ABSOLUTE 60000 FROM c',
	'FETCH ABSOLUTE 7 FROM c', 'FETCH PRIOR FROM c', 'FETCH BACKWARD 200 FROM c', 'FETCH BACKWARD ALL FROM c',
	'FETCH FIRST FROM c', 'FETCH LAST FROM c', 'MOVE BACKWARD 300 FROM c', 'MOVE ALL FROM c', 'MOVE ABSOLUTE 0 FROM c',
	q{SELECT fetches('c', 1)}, q{SELECT fetches('c', 9000)}, 'SAVEPOINT a; FETCH 1000 FROM c; ROLLBACK TO a',
	'SAVEPOINT a; SELECT 1 / 0; ROLLBACK TO a', 'SELECT count(*) FROM t', 'UPDATE large SET v = v WHERE id < 10',
	q{SET DateStyle = 'German'}, q{SET TimeZone = 'Asia/Kolkata'}, 'SET extra_float_digits = 0',
	q{SET bytea_output = 'escape'}, q{SELECT set_config('bytea_output', 'escape', true)},
	q{SET client_encoding = 'LATIN1'}, q{SET lc_monetary = 'C'})
{
	my @end = map { "RESET $_" } 'DateStyle', 'TimeZone', 'extra_float_digits', 'bytea_output', 'client_encoding';

	same($wire, $other, declare($plain), @ahead, $other, 'FETCH 500 FROM c', $other, @ahead,
		'FETCH BACKWARD 3 FROM c', 'FETCH FORWARD 1000 FROM c', 'COMMIT', @end);
	same($wire, "$other, NO SCROLL", declare($plain, 'NO SCROLL'), @ahead, $other, 'FETCH 500 FROM c', $other, @ahead,
		'ROLLBACK', @end) if $other !~ /FIRST|PRIOR|BACKWARD/;
}
same($wire, 'SCROLL', declare($plain, 'SCROLL'), @ahead, 'FETCH BACKWARD 1000 FROM c', @ahead, 'FETCH LAST FROM c',
	'FETCH PRIOR FROM c', 'FETCH NEXT FROM c', 'FETCH NEXT FROM c', 'FETCH PRIOR FROM c');
same($wire, 'behind the end', declare($plain), @to_end, 'FETCH NEXT FROM c', 'FETCH PRIOR FROM c', 'FETCH PRIOR FROM c',
	'FETCH 1000 FROM c', 'FETCH BACKWARD 1000 FROM c', 'FETCH ABSOLUTE -100 FROM c', 'FETCH 1000 FROM c');
same($wire, 'the last row and back', declare($plain), ('FETCH 20000 FROM c') x 10, 'FETCH PRIOR FROM c',
	'FETCH 1000 FROM c', 'FETCH PRIOR FROM c');
same($wire, 'cursors in turns',
	declare($plain) . '; DECLARE d CURSOR FOR SELECT v, id FROM large ORDER BY v COLLATE "C"',
	('FETCH 9000 FROM c', 'FETCH 8000 FROM d') x 10, 'FETCH PRIOR FROM c', 'CLOSE c', ('FETCH 8000 FROM d') x 3,
	declare($plain), 'FETCH 1000 FROM c');
same($wire, 'a cursor of another name for the same', declare($plain), @ahead, 'CLOSE c', "DECLARE c CURSOR FOR $all",
	'FETCH 1000 FROM c');
same($wire, 'WITH HOLD that goes back', declare($plain) =~ s/FOR/WITH HOLD FOR/r, @ahead, 'FETCH PRIOR FROM c',
	'COMMIT', 'FETCH PRIOR FROM c', 'FETCH 1000 FROM c', 'CLOSE c');
same($wire, 'EXPLAIN (ANALYZE)', declare($plain), @ahead, 'EXPLAIN (COSTS off) SELECT 1', @ahead);

# --- the extended protocol ------------------------------------------------------------------------

for my $formats ([], [1], [ 0, 1, 0, 1, 0, 1, 0 ])
{
	my $fetch = sub { $wire->extended('FETCH 9000 FROM c', formats => $formats)->{bytes} };

	same($wire, "extended, formats @$formats", declare($plain), ($fetch) x 10);
	same($wire, "in turns with simple, formats @$formats", declare($plain), ('FETCH 9000 FROM c', $fetch) x 10);
}
same($wire, 'with most rows', declare($plain), @ahead, sub {
	$wire->send_extended('FETCH 9000 FROM c', rows => 400);
	my $bytes = $wire->answer->{bytes};
	$wire->send_execute(500);
	$bytes .= $wire->answer->{bytes};
	$wire->send_execute(0);
	return $bytes . $wire->answer->{bytes};
}, @ahead);

# --- encodings and errors -------------------------------------------------------------------------

my $marks = 'SELECT * FROM marked ORDER BY id';
for my $encoding ('LATIN1', 'WIN1252', 'SQL_ASCII')
{
	my $other = wire(client_encoding => $encoding);

	same($other, $encoding, declare($all), ('FETCH 3000 FROM c') x 3);
	cmp_ok(same($other, "$encoding, ahead", declare($plain), @to_end), '>', 0, 'formed');
	# a letter that the client does not have, and does not get
	same($other, "$encoding, an error ahead", declare($marks), ('FETCH 10000 FROM c') x 8, 'MOVE 20000 FROM c',
		('FETCH 10000 FROM c') x 5);
	# one that it gets: the rows before it come, and the cursor goes on behind it
	same($other, "$encoding, an error", declare($marks) . '; SAVEPOINT a', ('FETCH 10000 FROM c') x 8,
		'FETCH 12000 FROM c', 'ROLLBACK TO a', ('FETCH 1000 FROM c') x 3, 'FETCH BACKWARD 2000 FROM c',
		'ROLLBACK', 'SELECT 1');
	same($other, "$encoding, an error among few rows", declare($marks), 'MOVE 89990 FROM c', 'SAVEPOINT a',
		'FETCH 1000 FROM c', 'ROLLBACK TO a', ('FETCH 1000 FROM c') x 3, 'ROLLBACK', 'SELECT 1');
}

# --- ends -----------------------------------------------------------------------------------------

my $large = 'SELECT a.*, b.id AS other FROM large a, generate_series(1, 3) b(id) ORDER BY a.g, a.id, b.id';
$wire->simple('SET gpusort.enable = on');
for my $after (0.01, 0.05, 0.2, 0.5, 1)
{
	$wire->simple(declare($large) . '; FETCH 1000 FROM c');
	$wire->send_simple(join '; ', ('FETCH 15000 FROM c') x 40);
	select undef, undef, undef, $after;
	$wire->cancel;
	my $answer = $wire->answer;
	like($answer->{error} // '57014 late', qr/^57014/, "cancelled after $after s, $answer->{rows} rows");
	$wire->simple('ROLLBACK');
	ok($node->nothing_left, 'nothing is left');
}
for my $timeout (100, 400, 1200)
{
	$wire->simple(declare($large) . "; FETCH 1000 FROM c; SET LOCAL statement_timeout = '${timeout}ms'");
	my $answer = $wire->simple(join '; ', ('FETCH 15000 FROM c') x 40);
	like($answer->{error} // '57014 late', qr/^57014/, "a timeout of $timeout ms, $answer->{rows} rows");
	$wire->simple('ROLLBACK');
}
for my $end ('terminated', 'gone')
{
	for my $after (100_000, 3_000_000, 10_000_000)
	{
		my $other = $node->wire;
		my $query = 'SELECT count(*) FROM pg_stat_activity WHERE pid = ' . $other->backend;

		$other->simple(declare($large) . '; FETCH 1000 FROM c');
		$other->send_simple(join '; ', ('FETCH 15000 FROM c') x 40);
		$other->read_some while length $other->{input} < $after;
		$end eq 'gone' ? $other->close : $node->ask('SELECT pg_terminate_backend(' . $other->backend . ')');
		ok(wait_until(sub { $node->ask($query) == 0 }), "$end after $after bytes");
		ok($node->nothing_left, 'nothing is left');
	}
}
# no worker is there between two FETCHes, and what was done meanwhile stays
$wire->simple(declare($plain));
for (1 .. 12)
{
	is($wire->simple('FETCH 10000 FROM c')->{rows}, 10000, 'rows');
	is(scalar $node->parallel_workers, 0, 'no worker');
	is($wire->simple(qq{INSERT INTO empty VALUES ($_); CREATE TEMP TABLE x$_ (a int)})->{error}, undef,
		'no parallel mode');
}
$wire->simple('COMMIT');
is($wire->ask('SELECT count(*) FROM empty'), 12, 'rows are there');

# the service killed: rows that are ahead come, others are lost
$wire->simple(declare($plain));
is($wire->simple('FETCH 30000 FROM c')->{rows}, 30000, 'rows');
kill 'KILL', $node->services;
my @rest = map { $wire->simple('FETCH 10000 FROM c') } 1 .. 17;
ok((grep { ($_->{error} // '') =~ /^58000/ } @rest) || !(grep { $_->{rows} != 10000 } @rest), 'the service killed');
$wire->simple('ROLLBACK');
$node->wait_service;
cmp_ok(same($wire, 'and with the next', declare($plain), @to_end), '>', 0, 'formed');

# functions of the session see the statement's number of rows
if ($node->safe_psql('postgres', q{SELECT count(*) FROM pg_available_extensions WHERE name = 'postgres_fdw'}))
{
	$node->safe_psql('postgres', sprintf q{
		CREATE EXTENSION postgres_fdw;
		CREATE SERVER own FOREIGN DATA WRAPPER postgres_fdw
			OPTIONS (host '%s', port '%s', dbname 'postgres', fetch_size '9000');
		CREATE USER MAPPING FOR postgres SERVER own;
		CREATE FOREIGN TABLE foreign_large (id int, g int8, v text) SERVER own OPTIONS (table_name 'large');
	}, $node->host, $node->port);
	my @sums = map { $node->safe_psql('postgres', "SET gpusort.enable = $_; SELECT md5(string_agg(a::text, ''))
		FROM (SELECT * FROM foreign_large ORDER BY g, id OFFSET 0) a") } 'off', 'on';
	is($sums[1], $sums[0], 'a foreign table');
}

ok($node->nothing_left, 'nothing is left');
unlike($node->log_text, qr/PANIC|TRAP|XX000|leak|still referenced/, 'the server lived through it all');
$_->close for @wires;
$node->remove;

done_testing;
