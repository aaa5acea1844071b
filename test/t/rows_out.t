# Rows that all processes form as the bytes that leave the server: each byte of each answer is PostgreSQL's,
# over types, formats, encodings and kinds of statements; errors, cancels, slow clients and clients that leave end
# as they do with PostgreSQL, and nothing is left behind.
use strict;
use warnings;

use GpuSortNode;
use POSIX qw(mkfifo);
use PostgreSQL::Test::Utils qw(append_to_file slurp_file);
use Test::More;
use Time::HiRes qw(sleep);

my $node = GpuSortNode->new('main');
$node->init(conf => [ 'max_parallel_workers_per_gather = 2', 'max_parallel_workers = 12', 'max_worker_processes = 16',
	'parallel_setup_cost = 0', 'parallel_tuple_cost = 0', 'min_parallel_table_scan_size = 0', 'gpusort.force = on',
	'gpusort.setup_cost = 0', 'gpusort.row_cost = 0', 'enable_hashagg = off' ]);
$node->start;
$node->wait_service;
my $xml = $node->safe_psql('postgres',
	q{SELECT count(*) FROM pg_config WHERE name = 'CONFIGURE' AND setting ~ 'libxml'});
my $own_xml = $xml ? q{xmlparse(document '<a b="ä">' || i || '</a>')} : q{i::text};
$node->safe_psql('postgres', qq{
	CREATE EXTENSION gpusort;
	CREATE TYPE mood AS ENUM ('low', 'middle', 'high');
	CREATE TYPE pair AS (a int, b text);
	CREATE DOMAIN positive AS int CHECK (value > 0);
	CREATE TABLE t AS SELECT i AS id, i * 7919 % 809 AS g,
			CASE WHEN i % 7 <> 0 THEN i / 7.0 END AS n, 'Zeile "' || i || '", ä' || repeat('x', i % 50) AS v,
			i::int2 AS i2, i * 10000000000 AS i8, i / 3.0::float8 AS f8, (i / 3.0)::float4 AS f4, i % 2 = 0 AS b,
			ARRAY[i, NULL, -i] AS ia, ARRAY['a b', NULL, 'ä"' || i] AS ta, ROW(i, 'x, y')::pair AS c,
			ARRAY[ROW(i, NULL)::pair] AS ca, int4range(i, i + 5) AS r, int4multirange(int4range(i, i + 2)) AS mr,
			jsonb_build_object('a', i, 'b', 'ä') AS j, '{"k": 1}'::json AS js, decode(md5(i::text), 'hex') AS by,
			$own_xml AS x, i::numeric::money AS m, 'pg_class'::regclass AS rc,
			'now'::timestamptz + i * interval '1 h' AS tz,
			'2020-01-01'::timestamp + i * interval '1 min' AS ts, '2020-01-01'::date + i AS d, '10:00'::time AS tm,
			i * interval '1 day 1 s' AS iv, md5(i::text)::uuid AS u, '10.0.0.1'::inet + i AS ip, i::bit(12) AS bi,
			(ARRAY['low', 'middle', 'high'])[i % 3 + 1]::mood AS e, i::positive AS dom,
			 point(i, i) AS p, 'a' || i AS name,
			'a b'::tsvector AS tv, 'c'::"char" AS ch, NULL::text AS nothing
		FROM generate_series(1, 6000) i;
	ALTER TABLE t ALTER v SET STORAGE external;
	CREATE TABLE long AS SELECT i AS id, i % 50 AS g,
		(SELECT string_agg(md5((i * j)::text), '')
			FROM generate_series(1, CASE WHEN i % 50 = 0 THEN 20000 ELSE 3 END) j) AS v
		FROM generate_series(1, 1000) i;
	CREATE TABLE large AS SELECT i AS id, i * 7919 % 8009 AS g, 'row ' || i || repeat('x', 100) AS v
		FROM generate_series(1, 100000) i;
	CREATE TABLE empty (LIKE large);
	ANALYZE;
	CREATE TYPE unsafe;
	CREATE FUNCTION unsafe_in(cstring) RETURNS unsafe LANGUAGE internal STRICT IMMUTABLE PARALLEL SAFE AS 'int4in';
	CREATE FUNCTION unsafe_out(unsafe) RETURNS cstring LANGUAGE internal STRICT IMMUTABLE PARALLEL UNSAFE AS 'int4out';
	CREATE TYPE unsafe (input = unsafe_in, output = unsafe_out, passedbyvalue, internallength = 4, alignment = int4);
	CREATE CAST (int AS unsafe) WITHOUT FUNCTION;
	CREATE TYPE has_unsafe AS (a int, b unsafe[]);
	CREATE TABLE marked AS SELECT i AS id, i % 50 AS g, CASE WHEN i = 4000 THEN '\x{263a}' ELSE 'plain' END AS v
		FROM generate_series(1, 6000) i;
	ANALYZE marked;
});
my ($service) = $node->services;
my @wires;

sub wire
{
	my $wire = $node->wire(@_);
	push @wires, $wire;
	return $wire;
}

# the session's backend waits until its client reads
sub waits_for_client
{
	my ($wire) = @_;
	my $query = q{SELECT wait_event = 'ClientWrite' FROM pg_stat_activity WHERE pid = } . $wire->backend;
	return wait_until(sub { $node->ask($query) eq 't' });
}

# workers wait until the client reads
sub workers_wait
{
	return wait_until(sub { $node->ask(q{SELECT count(*) > 0 AND bool_and(coalesce(wait_event_type = 'Extension', false))
		FROM pg_stat_activity WHERE backend_type = 'parallel worker'}) eq 't' });
}

# the session's backend has ended
sub is_gone
{
	my ($wire) = @_;
	my $query = 'SELECT count(*) FROM pg_stat_activity WHERE pid = ' . $wire->backend;
	return wait_until(sub { $node->ask($query) == 0 });
}

# how many rows workers have formed
sub formed
{
	return $node->ask('SELECT formed_rows FROM gpusort_stats');
}

# An answer with gpusort, and PostgreSQL's of one process, are the same to the byte; returns the first, with how many
# rows workers have formed and with the second, which may be given where it has been asked for before.
sub same
{
	my ($wire, $what, $ask, $native) = @_;
	if (!defined $native)
	{
		$wire->simple('SET gpusort.enable = off; SET max_parallel_workers_per_gather = 0');
		$native = $ask->();
		$wire->simple('SET gpusort.enable = on; RESET max_parallel_workers_per_gather');
	}
	my $before = formed();
	my $ours = $ask->();
	$ours->{formed} = formed() - $before;
	$ours->{native} = $native;
	ok($ours->{bytes} eq $native->{bytes}, "$what: the same bytes")
		or diag "rows $ours->{rows} $native->{rows}, " . ($ours->{error} // '') . ', ' . ($native->{error} // '');
	return $ours;
}

sub by_ranges { return "SELECT $_[0], sum(id) OVER (PARTITION BY g ORDER BY id) FROM $_[1] ORDER BY g, id" }

my $all = by_ranges('*', 't');

# --- formats, protocols, settings -----------------------------------------------------------------

my $wire = wire();
my $answer = same($wire, 'simple protocol', sub { $wire->simple($all) });
is($answer->{rows}, 6000, 'all rows');
cmp_ok($answer->{formed}, '>', 0, 'workers have formed rows');
cmp_ok(same($wire, 'extended protocol', sub { $wire->extended($all) })->{formed}, '>', 0, 'workers have formed rows');
my $columns = join ', ', qw(id n v i2 i8 f8 f4 b ia ta c ca r mr j js by x m rc tz ts d tm iv u ip bi e dom p name tv ch
	nothing);
my $binary = by_ranges($columns, 't');
cmp_ok(same($wire, 'binary', sub { $wire->extended($binary, formats => [1]) })->{formed}, '>', 0, 'formed');
same($wire, 'text and binary', sub { $wire->extended(by_ranges('id, n, v, ia', 't'), formats => [ 1, 0, 1, 0, 1 ]) });
$answer = same($wire, 'of many rows', sub { $wire->extended(by_ranges('id, v', 'large'), formats => [ 1, 0, 1 ]) });
cmp_ok($answer->{formed}, '>', 0, 'formed');
same($wire, 'a format that is none', sub { $wire->extended(by_ranges('id', 't'), formats => [7]) });
same($wire, 'a parameter',
	sub { $wire->extended(by_ranges('id, v', 't') =~ s/FROM t/FROM t WHERE id > \$1/r, values => [50]) });
same($wire, 'several statements', sub { $wire->simple("SELECT 1; $all; SELECT 2; " . by_ranges('id', 'large')) });
same($wire, 'no rows', sub { $wire->simple(by_ranges('*', 'empty')) });
same($wire, 'no columns', sub { $wire->simple('SELECT FROM t ORDER BY g, id') });
same($wire, 'DISTINCT', sub { $wire->simple('SELECT DISTINCT ON (g) g, id, v FROM t ORDER BY g, id DESC') });
same($wire, 'a key that is not there',
	sub { $wire->simple('SELECT sum(id) OVER (PARTITION BY g ORDER BY id) FROM t ORDER BY g, id') });
cmp_ok(same($wire, 'long rows', sub { $wire->simple(by_ranges('*', 'long')) })->{formed}, '>', 0, 'formed');
for my $set (q{DateStyle = 'German'}, q{DateStyle = 'SQL, DMY'}, q{IntervalStyle = 'iso_8601'},
	q{TimeZone = 'Asia/Kolkata'}, 'extra_float_digits = 0', q{bytea_output = 'escape'}, q{xmlbinary = 'hex'},
	q{lc_monetary = 'C'}, 'quote_all_identifiers = on')
{
	$wire->simple("SET $set");
	cmp_ok(same($wire, $set, sub { $wire->simple($all) })->{formed}, '>', 0, 'formed');
	$wire->simple('RESET ' . $set =~ s/ =.*//r);
}
my $large = by_ranges('*', 'large');
my $native;
for my $participation ('on', 'off')
{
	for my $workers (0, 1, 3)
	{
		$wire->simple("SET max_parallel_workers = $workers; SET parallel_leader_participation = $participation");
		$wire->simple('SET max_parallel_workers_per_gather = 3') if defined $native;
		$answer = same($wire, "$workers workers, leader $participation", sub { $wire->simple($large) }, $native);
		is($answer->{formed} > 0, $workers > 0, 'formed if there are workers');
		$native = $answer->{native};
	}
}
$wire->simple('RESET max_parallel_workers; RESET parallel_leader_participation');
$wire->simple(q{RESET max_parallel_workers_per_gather; SET work_mem = '64kB'});
same($wire, 'little memory', sub { $wire->simple($large) }, $native);
$wire->simple(q{RESET work_mem});
my $right = $native->{bytes};

# --- encodings ------------------------------------------------------------------------------------

my $both = by_ranges("$columns, $columns", 't');
my @formats = map { ($_) x (() = $columns =~ /\w+/g) } 0, 1;
for my $encoding ('UTF8', 'LATIN1', 'WIN1252', 'SQL_ASCII', 'WIN1254')
{
	my $other = wire(client_encoding => $encoding);
	# each column as text and as binary
	$answer = same($other, $encoding, sub { $other->extended($both, formats => [ @formats, 0 ]) });
	is($answer->{error}, undef, 'no error');
	cmp_ok($answer->{formed}, '>', 0, 'formed');
	same($other, "$encoding, set later", sub {
		$other->simple(q{SET client_encoding = 'LATIN1'});
		my $later = $other->simple($all);
		$other->simple("SET client_encoding = '$encoding'");
		return $later;
	}) if $encoding eq 'UTF8' || $encoding eq 'WIN1252';
	$other->close;
}
my $latin = wire(client_encoding => 'LATIN1');
for my $enable ('off', 'on', 'on')
{
	$latin->simple("SET gpusort.enable = $enable");
	$answer = $latin->simple(by_ranges('v', 'marked'));
	like($answer->{error}, qr/^22P05 character with byte sequence 0xe2 0x98 0xba/, "no such character, $enable");
}
is($latin->simple(q{SELECT 'ä'})->{error}, undef, 'and the session goes on');
ok($node->nothing_left, 'nothing is left');

# --- COPY -----------------------------------------------------------------------------------------

my @options = ('', '(FORMAT csv)', '(FORMAT csv, HEADER)', '(HEADER true)', '(FORMAT binary)',
	q{(DELIMITER '|', NULL 'nil')}, q{(FORMAT csv, FORCE_QUOTE *)},
	q{(FORMAT csv, FORCE_QUOTE (v, n), NULL 'x', QUOTE '''', ESCAPE '\', DELIMITER ';')},
	q{(ENCODING 'LATIN1')}, q{(FORMAT binary, ENCODING 'LATIN1')}, q{(FORMAT csv, ENCODING 'WIN1252', HEADER on)},
	q{(NULL '')}, q{CSV HEADER DELIMITER AS '#'});
my @framed = ('', '(FORMAT csv, HEADER)', '(HEADER true)', '(FORMAT binary)');
for my $option (@options)
{
	my $columns = $option =~ /binary/i ? $columns : '*';
	my $all = by_ranges($columns, 't');
	$answer = same($wire, "COPY $option", sub { $wire->simple("COPY ($all) TO STDOUT $option") });
	cmp_ok($answer->{rows}, '>=', 6000, 'all rows');
	cmp_ok($answer->{formed}, '>', 0, 'formed');
	like($answer->{bytes}, qr/COPY 6000\0/, 'COPY counts them');
	# what comes before rows and after them
	next if !grep { $_ eq $option } @framed;
	same($wire, "COPY $option of no rows",
		sub { $wire->simple('COPY (' . by_ranges('*', 'empty') . ") TO STDOUT $option") });
	same($wire, "COPY $option of few rows", sub { $wire->simple('COPY (' . by_ranges('id, v, g AS n', 't WHERE id < 3')
		. ") TO STDOUT $option") });
}
for my $encoding ('LATIN1', 'SQL_ASCII')
{
	my $other = wire(client_encoding => $encoding);
	for my $option ('', '(FORMAT binary)', q{(FORMAT csv, ENCODING 'UTF8')})
	{
		$answer = same($other, "COPY $option for $encoding",
			sub { $other->simple('COPY (' . by_ranges($columns, 't') . ") TO STDOUT $option") });
		cmp_ok($answer->{formed}, '>', 0, 'formed');
	}
	$other->close;
}
same($wire, 'COPY by the extended protocol', sub { $wire->extended("COPY ($all) TO STDOUT") });
same($wire, 'COPY of long rows', sub { $wire->simple('COPY (' . by_ranges('*', 'long') . ") TO STDOUT $_") })
	for '', '(FORMAT binary)';
my %native;
for my $leader ('on', 'off')
{
	$wire->simple("SET parallel_leader_participation = $leader");
	$native{$_} = same($wire, "COPY $_, leader $leader", sub { $wire->simple("COPY ($large) TO STDOUT $_") },
		$native{$_})->{native} for '', '(FORMAT binary)';
}
$wire->simple('RESET parallel_leader_participation');
same($wire, 'no such column', sub { $wire->simple("COPY ($all) TO STDOUT (FORMAT csv, FORCE_QUOTE (none))") });
for my $enable ('off', 'on', 'on')
{
	$wire->simple("SET gpusort.enable = $enable");
	$answer = $wire->simple(q{COPY (} . by_ranges('v', 'marked') . q{) TO STDOUT (ENCODING 'LATIN1')});
	like($answer->{error}, qr/^22P05 character with byte sequence 0xe2 0x98 0xba/, "no such character in COPY, $enable");
	is($wire->simple('SELECT 1')->{error}, undef, 'and the session goes on');
}
same($wire, 'COPY of what the transaction has made', sub { $wire->simple('BEGIN; INSERT INTO empty SELECT i, i % 9, '
	. "'new' FROM generate_series(1, 30000) i; COPY (" . by_ranges('*', 'empty') . ') TO STDOUT; ROLLBACK') });
# a function that copies to a file is another statement
my $file = $node->basedir . '/copied';
$wire->simple(qq{CREATE FUNCTION copies() RETURNS int LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS \$\$
	BEGIN EXECUTE 'COPY ($all) TO ''$file'''; RETURN 1; END \$\$});
is(same($wire, 'a COPY within one', sub { $wire->simple('COPY (SELECT copies()) TO STDOUT') })->{formed}, 0, 'as rows');
ok($node->nothing_left, 'nothing is left');

# --- COPY to a file or a program ------------------------------------------------------------------

# The answer and what is in the file are the same with gpusort and without; meanwhile is done while it is on its way.
sub same_file
{
	my ($wire, $what, $statement, $native, $meanwhile) = @_;
	return same($wire, $what, sub {
		unlink $file;
		$wire->send_simple($statement);
		$meanwhile->() if $meanwhile;
		my $answer = $wire->answer;
		$answer->{file} = -e $file ? slurp_file($file) : '';
		$answer->{bytes} .= $answer->{file};
		return $answer;
	}, $native);
}

my %targets = (file => "'$file'", program => "PROGRAM 'cat >$file'");
for my $target (sort keys %targets)
{
	for my $option ($target eq 'file' ? (@framed, q{(FORMAT csv, ENCODING 'WIN1252', HEADER on)}) : @framed[ 1, 3 ])
	{
		my $columns = $option =~ /binary/i ? $columns : '*';

		$answer = same_file($wire, "COPY to a $target $option",
			'COPY (' . by_ranges($columns, 't') . ") TO $targets{$target} $option");
		cmp_ok($answer->{formed}, '>', 0, 'formed');
		cmp_ok(length $answer->{file}, '>', 1_000_000, 'all is there');
		like($answer->{bytes}, qr/COPY 6000\0/, 'COPY counts the rows');
		same_file($wire, "COPY of no rows to a $target $option",
			'COPY (' . by_ranges('*', 'empty') . ") TO $targets{$target} $option");
		same_file($wire, "COPY of few rows to a $target $option",
			'COPY (' . by_ranges('id, v, g AS n', 't WHERE id < 3') . ") TO $targets{$target} $option");
	}
}
for my $encoding ('LATIN1', 'SQL_ASCII')
{
	my $other = wire(client_encoding => $encoding);
	for my $option ('', '(FORMAT binary)', q{(FORMAT csv, ENCODING 'UTF8')})
	{
		$answer = same_file($other, "COPY to a file $option for $encoding",
			'COPY (' . by_ranges($columns, 't') . ") TO '$file' $option");
		cmp_ok($answer->{formed}, '>', 0, 'formed');
	}
	$other->close;
}
%native = ();
for my $leader ('on', 'off')
{
	for my $workers (0, 1, 3)
	{
		$wire->simple("SET max_parallel_workers = $workers; SET parallel_leader_participation = $leader");
		# each way with both formats
		my ($option, $other) = $leader eq 'on' ? ('', '(FORMAT binary)') : ('(FORMAT binary)', '');
		for my $copy ("COPY ($large) TO '$file' $option",
			"COPY (SELECT * FROM large ORDER BY g, id) TO PROGRAM 'cat >$file' $other")
		{
			$native{$copy} = same_file($wire, "$copy, $workers workers, leader $leader", $copy, $native{$copy})->{native};
		}
	}
}
$wire->simple('RESET max_parallel_workers; RESET parallel_leader_participation');
same_file($wire, 'COPY of long rows to a file', 'COPY (' . by_ranges('*', 'long') . ") TO '$file' $_")
	for '', '(FORMAT binary)';
same_file($wire, 'COPY to a file by the extended protocol', "COPY ($all) TO '$file'");
is(same_file($wire, 'a function that copies', 'SELECT copies()')->{formed}, 0, 'as rows');
same($wire, 'COPY to a file that cannot be opened', sub { $wire->simple("COPY ($all) TO '/nowhere/copied'") });
same($wire, 'a program that cannot be run', sub { $wire->simple("COPY ($all) TO PROGRAM '/nowhere/program'") });
$wire->simple(q{CREATE ROLE nobody; GRANT SELECT ON t TO nobody; SET ROLE nobody});
same($wire, 'COPY without the right to', sub { $wire->simple("COPY ($all) TO $_") }) for values %targets;
$wire->simple('RESET ROLE');

if ($node->ask('SHOW server_version_num') >= 190000)
{
	my $known = join ', ', grep { !/^(?:c|ca|e)$/ } split /, /, $columns;
	for my $target ('STDOUT', sort values %targets)
	{
		$answer = same_file($wire, "JSON to $target",
			'COPY (' . by_ranges("$known, id AS \"a \"\"b\"", 't') . ") TO $target (FORMAT json)");
		cmp_ok($answer->{formed}, '>', 0, 'formed');
		same_file($wire, "JSON of no rows to $target",
			'COPY (' . by_ranges('*', 'empty') . ") TO $target (FORMAT json)");
		is(same_file($wire, "$_ to $target", 'COPY (' . by_ranges($_, 't') . ") TO $target (FORMAT json)")->{formed}, 0,
			'as rows') for 'id, e', 'c', 'ca';
		is(same_file($wire, "a JSON array to $target",
			'COPY (' . by_ranges('id, v', 't') . ") TO $target (FORMAT json, FORCE_ARRAY true)")->{formed}, 0, 'as rows');
	}
}

# other kinds of files
my $other_name = $node->basedir . '/other';
symlink $file, $other_name;
cmp_ok(same_file($wire, 'COPY through a link', "COPY ($all) TO '$other_name'")->{formed}, '>', 0, 'formed');
unlink $other_name;
mkfifo($other_name, 0600) or die "$other_name: $!";
$answer = same($wire, 'COPY to a pipe', sub {
	my $reader = fork // die "fork: $!";
	exec 'sh', '-c', "cat '$other_name' >'$file'" or die if $reader == 0;
	my $answer = $wire->simple("COPY ($all) TO '$other_name'");
	waitpid $reader, 0;
	$answer->{bytes} .= slurp_file($file);
	return $answer;
});
cmp_ok($answer->{formed}, '>', 0, 'formed');
unlink $other_name;

# what cannot be written is PostgreSQL's error, of few rows and of many
my $large_copy = "COPY ($large) TO";
for my $rows ($large_copy, 'COPY (' . by_ranges('id', 't WHERE id < 3') . ') TO')
{
	for my $option ('', '(FORMAT binary)')
	{
		for my $target ($option ? q{'/dev/full'} : (q{'/dev/full'}, q{PROGRAM 'exit 3'},
			q{PROGRAM 'head -c 100000 >/dev/null'}, q{PROGRAM 'head -c 300000 >/dev/null; kill -9 $$'},
			q{PROGRAM 'cat >/dev/null; exit 4'}))
		{
			same($wire, "$target $option", sub { $wire->simple("$rows $target $option") });
		}
	}
}
like($wire->simple("$large_copy '/dev/full'")->{error}, qr/^53100 could not write to COPY file: No space left/,
	'a full disk');
like($wire->simple("$large_copy PROGRAM 'exit 3'")->{bytes},
	qr/^E ERROR 38000 program "exit 3" failed child process exited with exit code 3$/m, 'a program that fails');
is($wire->simple('SELECT 1')->{error}, undef, 'the session goes on');

# after an error the file has the beginning of what it would have
sub begins
{
	my ($what, $statement, $error) = @_;
	my @files;

	for my $enable ('off', 'on')
	{
		unlink $file;
		$wire->simple("SET gpusort.enable = $enable");
		like($wire->simple($statement)->{error} // '', $error, "$what, $enable");
		push @files, slurp_file($file);
	}
	my $length = length $files[0] < length $files[1] ? length $files[0] : length $files[1];
	ok(substr($files[0], 0, $length) eq substr($files[1], 0, $length), "$what: the same beginning");
	return @files;
}
begins("an error in row $_", 'COPY (' . by_ranges("10 / (id - $_)", 't') . ") TO '$file'", qr/^22012/)
	for 1, 3000, 5999;
begins('no such character', 'COPY (' . by_ranges('v', 'marked') . ") TO '$file' (ENCODING 'LATIN1')", qr/^22P05/);
SKIP:
{
	skip 'no prlimit', 1 unless system("prlimit --pid=$$ >/dev/null 2>&1") == 0;
	# less than it would be, and more than shared memory and temporary files
	my $most = 12_000_000;
	$wire->simple(q{SET work_mem = '256MB'});
	system 'prlimit', '--pid=' . $wire->backend, "--fsize=$most:unlimited";
	my @files = begins('a file as long as it may be', "$large_copy '$file'", qr/^XX000 could not write to COPY file/);
	is(length $_, $most, 'the file is that long') for @files;
	system 'prlimit', '--pid=' . $wire->backend, '--fsize=unlimited:unlimited';
	$wire->simple('RESET work_mem');
}
# the signal goes to the program, too
$wire->simple(q{SET statement_timeout = '500ms'});
begins('a timeout', "$large_copy PROGRAM 'trap \"\" INT; sleep 1; cat >$file'", qr/^57014/);
$wire->simple('RESET statement_timeout; SET gpusort.enable = on');
# the program waits in the middle to be let go
mkfifo($other_name, 0600) or die "$other_name: $!";
for my $part (0, 1, 5)
{
	unlink $file;
	$wire->send_simple("$large_copy PROGRAM '"
		. "trap \"\" INT; head -c ${part}000000 >$file; cat $other_name; cat >>$file'");
	ok(wait_until(sub { (-s $file // -1) >= 1000000 * $part }), "part $part is there");
	$wire->cancel;
	append_to_file($other_name, '');
	like($wire->answer->{error} // '', qr/^57014 canceling statement due to user request/, "cancelled in part $part");
}

# what is shown of it when all is written
my @shown = map {
	my $shown;

	$wire->simple("SET gpusort.enable = $_");
	$wire->send_simple("COPY ($all) TO PROGRAM 'cat >/dev/null; cat $other_name'");
	wait_until(sub {
		$shown = $node->ask(
			'SELECT command, type, bytes_processed, bytes_total, tuples_processed FROM pg_stat_progress_copy');
		$shown =~ /\|6000$/;
	});
	append_to_file($other_name, '');
	$wire->answer;
	$shown;
} 'off', 'on';
unlink $other_name;
like($shown[0], qr/^COPY TO\|PROGRAM\|\d+\|0\|6000$/, 'progress');
is($shown[1], $shown[0], 'is the same');
ok($node->nothing_left, 'nothing is left');
unlink $file;

# --- rows that are too long to be formed ----------------------------------------------------------

# by workers: a few, and all; each way to send them, and to a file
my $longest = 'SELECT id, CASE WHEN id % 500 = 0 THEN repeat(v, 30) ELSE left(v, 1000) END AS v,
	sum(id) OVER (PARTITION BY g ORDER BY id) FROM long WHERE id > 0 ORDER BY g, id';
my $all_long = $longest =~ s/id > 0/id % 500 = 0/r;
for my $case ([ 'on', $longest ], [ 'on', "COPY ($longest) TO STDOUT (FORMAT binary)" ],
	[ 'on', "COPY ($all_long) TO STDOUT" ], [ 'off', $all_long ], [ 'off', "COPY ($all_long) TO '$file' (FORMAT binary)" ])
{
	my ($leader, $statement) = @$case;

	$wire->simple("SET parallel_leader_participation = $leader");
	same_file($wire, "$statement, leader $leader", $statement);
}
$wire->simple('RESET parallel_leader_participation');

# --- nothing above the sort -----------------------------------------------------------------------

my $plain = 'SELECT * FROM large ORDER BY g, id';
my $made = "CREATE TABLE again AS $plain; "
	. "SELECT md5(string_agg(a::text, '' ORDER BY ctid)) FROM again a; DROP TABLE again";
my $native_plain;
like($wire->simple("EXPLAIN $plain")->{bytes}, qr/GpuSortExchange.*GpuSortOutput.*GpuSort\)/s,
	'the plan of a sort alone');
for my $statement ($plain, 'SELECT id, v FROM large ORDER BY v COLLATE "C" DESC', 'SELECT v FROM large ORDER BY g, id',
	'SELECT id, upper(v), g / 2 FROM large WHERE id % 3 > 0 ORDER BY g NULLS FIRST, id', "COPY ($plain) TO STDOUT",
	"COPY ($plain) TO STDOUT (FORMAT binary)", 'SELECT DISTINCT g, id FROM large ORDER BY g, id',
	'SELECT a.id, b.v FROM large a JOIN large b USING (id) ORDER BY a.g, a.id', $made)
{
	$answer = same($wire, $statement, sub { $wire->simple($statement) });
	cmp_ok($answer->{formed}, '>', 0, 'formed');
	$native_plain //= $answer->{native};
}
$wire->simple("PREPARE q AS $plain");
for my $statement (
	"$plain LIMIT 1000", "$plain OFFSET 99000", "BEGIN; DECLARE c CURSOR FOR $plain; FETCH 1000 FROM c; COMMIT",
	'EXECUTE q', "BEGIN; DECLARE c SCROLL CURSOR FOR $plain; FETCH 1000 FROM c; FETCH BACKWARD 500 FROM c; COMMIT",
	"INSERT INTO empty $plain RETURNING id",
	q{SELECT md5(string_agg(a::text, '')) FROM (} . $plain . ' OFFSET 0) a',
	'TRUNCATE empty', "SELECT id, ROW(g, v) FROM large ORDER BY g, id", "$plain FOR UPDATE",
	"SELECT id, nextval('counted') - lastval() FROM large ORDER BY g, id",
	"SELECT id, random() < 2 FROM large ORDER BY g, id")
{
	$wire->simple('CREATE SEQUENCE IF NOT EXISTS counted');
	is(same($wire, $statement, sub { $wire->simple($statement) })->{formed}, 0, 'as rows');
}
like($wire->simple("EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off) $plain")->{bytes},
	qr/GpuSortExchange\) \(actual rows=100000(?:\.00)? loops=1\)/, 'EXPLAIN counts rows');
for my $workers (0, 1)
{
	$wire->simple("SET max_parallel_workers = $workers");
	same($wire, "$workers workers", sub { $wire->simple($plain) }, $native_plain);
	same($wire, "$workers workers, a table", sub { $wire->simple($made) });
}
$wire->simple('RESET max_parallel_workers');
$wire->simple('SET gpusort.enable = on');
$answer = $wire->extended($plain, rows => 500);
is($answer->{rows}, 500, 'some rows at once');
ok($node->nothing_left, 'nothing is left');

# --- as ever --------------------------------------------------------------------------------------

# rows come as rows where workers may not form them, or do not know what leaves
for my $columns ('id::unsafe AS u', 'ARRAY[id::unsafe] AS u', 'ROW(id, ARRAY[id::unsafe])::has_unsafe AS u',
	'ROW(id, v) AS u')
{
	$answer = same($wire, $columns, sub { $wire->simple(by_ranges($columns, 't')) });
	is($answer->{rows}, 6000, 'all rows');
	is($answer->{formed}, 0, 'as rows');
}
for my $rows (1, 100000)
{
	$answer = same($wire, "$rows rows at once", sub { $wire->extended($all, rows => $rows) });
	is($answer->{formed}, 0, 'as rows');
}
$answer = same($wire, 'a portal read in parts', sub {
	my %all = (bytes => '');
	$wire->simple('BEGIN');
	for my $part (0 .. 3)
	{
		if ($part == 0)
		{
			$wire->send_extended($all, rows => 1500);
		}
		else
		{
			$wire->send_execute($part == 3 ? 0 : 1500);
		}
		my $answer = $wire->answer;
		$all{bytes} .= $answer->{bytes};
		$all{rows} += $answer->{rows};
	}
	$wire->simple('COMMIT');
	return \%all;
});
is($answer->{formed}, 0, 'as rows');
$wire->simple("PREPARE p AS $all");
for my $statement ('EXECUTE p', "BEGIN; DECLARE c CURSOR FOR $all; FETCH 2000 FROM c; FETCH ALL FROM c; COMMIT",
	"$all LIMIT 1000", "$all OFFSET 5900",
	"WITH q AS MATERIALIZED ($all) SELECT count(*) FROM q", "WITH d AS (DELETE FROM empty RETURNING id) $all")
{
	is(same($wire, substr($statement, 0, 40), sub { $wire->simple($statement) })->{formed}, 0, 'as rows');
}
$wire->simple('SET gpusort.parallel_output = off');
is(same($wire, 'gpusort.parallel_output', sub { $wire->simple($all) })->{formed}, 0, 'as rows');
$wire->simple('RESET gpusort.parallel_output');

# counts
$wire->simple('SET gpusort.enable = on');
like($wire->simple("EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off) $all")->{bytes},
	qr/GpuSortExchange\) \(actual rows=6000(?:\.00)? loops=1\)/, 'EXPLAIN counts rows');
like($wire->simple($all)->{bytes}, qr/SELECT 6000\0/, 'so does the command tag');

if ($node->ask('SHOW server_version_num') >= 170000)
{
	my @sizes = map {
		$wire->simple("SET gpusort.enable = $_");
		$wire->simple("EXPLAIN (ANALYZE, SERIALIZE TEXT) $plain")->{bytes} =~ /Serialization: .*?output=(\d+kB)/;
	} 'off', 'on';
	is($sizes[1], $sizes[0], 'EXPLAIN (SERIALIZE) forms as many bytes');
}
$wire->simple('SET gpusort.log_decisions = on');
$wire->simple(by_ranges('id::unsafe AS u', 't'));
$wire->simple('RESET gpusort.log_decisions');
like($node->log_text, qr/only one process forms the rows that leave: the output of column "u" is not known to be/,
	'the log tells why not');

# --- errors and ends ------------------------------------------------------------------------------

# an error in a row far behind, of the plan and of an output function
for my $row (1, 3000, 5999)
{
	for my $column ("10 / (id - $row)", "CASE WHEN id = $row THEN (chr(9786)) END")
	{
		my $session = $column =~ /chr/ ? $latin : $wire;
		my ($native, $ours) = map {
			$session->simple("SET gpusort.enable = $_");
			$session->simple(by_ranges($column, 't'));
		} 'off', 'on';
		is($ours->{error}, $native->{error}, "$column: the same error");
		cmp_ok($ours->{rows}, '<', 6000, 'after some rows');
		is($session->simple('SELECT 1')->{error}, undef, 'the session goes on');
	}
}
ok($node->nothing_left, 'nothing is left');

$wire->simple('SET gpusort.enable = on');
for my $part (0, 1, 3, 5, 9)
{
	# after so many bytes of the answer, and its first
	$wire->send_simple($large);
	$wire->read_some;
	$wire->read_some while length $wire->{input} < 1000000 * $part;
	$wire->cancel;
	$answer = $wire->answer;
	like($answer->{error} // '', qr/^57014 canceling statement due to user request/, "cancelled in part $part")
		or diag $answer->{rows};
	is($wire->simple($all)->{rows}, 6000, 'the session goes on');
}
ok($node->nothing_left, 'nothing is left');

# a client that reads slowly meets statement_timeout as it does natively
$wire->simple(q{SET statement_timeout = '300ms'});
for my $enable ('off', 'on')
{
	$wire->simple("SET gpusort.enable = $enable");
	$wire->send_simple("$large");
	sleep 1;
	$answer = $wire->answer(slow => 0.0002);
	like($answer->{error} // '', qr/^57014 canceling statement due to statement timeout/, "slow client, $enable");
}
$wire->simple('RESET statement_timeout');
$wire->send_simple($large);
ok(waits_for_client($wire), 'the server waits');
is($wire->answer->{rows}, 100000, 'a client that does not read gets all of its rows later');
ok($node->nothing_left, 'nothing is left');

# a client that does not read: workers end when what they have made fits between them and the leader
my $fitting = by_ranges('*', 'large WHERE id <= 6000');
$wire->simple('SET gpusort.enable = off');
my $right_fitting = $wire->simple($fitting)->{bytes};
$wire->simple('SET gpusort.enable = on');
$wire->send_simple($fitting);
ok(waits_for_client($wire), 'the server waits for a client that does not read');
ok(wait_until(sub { !$node->parallel_workers }), 'and holds no worker');
ok($wire->answer->{bytes} eq $right_fitting, 'who gets the right rows later');

# and when it does not fit, since they put it into files; the leader's, of ranges that it forms ahead, are others
my $worker_files = $node->data_dir . '/base/pgsql_tmp/*.fileset';
for my $work_mem ('64kB', '4MB')
{
	$wire->simple("SET gpusort.enable = on; SET work_mem = '$work_mem'");
	$wire->send_simple($large);
	ok(waits_for_client($wire), "work_mem $work_mem: the server waits for a client that does not read");
	ok(wait_until(sub { !$node->parallel_workers }), 'and holds no worker');
	ok((() = glob $worker_files), 'but files');
	ok($wire->answer->{bytes} eq $right, 'who gets the right rows later');
	ok($node->nothing_left, 'nothing is left');
}
my $long_rows = by_ranges('*', 'long');
$wire->simple(q{SET gpusort.enable = off});
my $right_long = $wire->simple($long_rows)->{bytes};
$wire->simple(q{SET gpusort.enable = on; SET work_mem = '64kB'});
$wire->send_simple($long_rows);
ok(waits_for_client($wire), 'long rows: the server waits');
ok(wait_until(sub { !$node->parallel_workers }), 'and holds no worker');
ok($wire->answer->{bytes} eq $right_long, 'the client gets the right rows later');
for my $end ('cancelled', 'terminated', 'gone')
{
	my $other = wire();

	$other->simple(q{SET work_mem = '64kB'});
	$other->send_simple($large);
	ok(waits_for_client($other)
		&& wait_until(sub { !$node->parallel_workers }), "the rows of a statement that is $end are in files");
	$other->cancel if $end eq 'cancelled';
	$node->ask('SELECT pg_terminate_backend(' . $other->backend . ')') if $end eq 'terminated';
	like($other->answer->{error} // 'none', qr/^57014/, 'it is cancelled') if $end eq 'cancelled';
	$other->close;
	ok(is_gone($other), 'the session ends');
	ok($node->nothing_left, 'nothing is left');
}
$wire->simple(q{SET temp_file_limit = '1MB'});
$wire->send_simple($large);
ok(waits_for_client($wire), 'where files are limited the server waits');
ok(workers_wait(), 'and its workers');
ok(!(() = glob $worker_files), 'and they make no file');
ok($wire->answer->{bytes} eq $right, 'who gets the right rows later');
$wire->simple('RESET temp_file_limit; RESET work_mem');
ok($node->nothing_left, 'nothing is left');

# timeouts of sessions that are idle do not count while rows are on their way, but after them
for my $enable ('off', 'on')
{
	my $idle = wire();

	$idle->simple("SET gpusort.enable = $enable; SET idle_in_transaction_session_timeout = '50ms'");
	$idle->send_simple("BEGIN; $large");
	ok(waits_for_client($idle), "a transaction whose client does not read, $enable");
	is($idle->answer->{rows}, 100000, 'gets all of its rows');
	$answer = $idle->answer;
	ok($answer->{gone} && $answer->{error} =~ /^25P03/, 'and is idle then');
}

# A worker waits in its first range, for a lock that is held until the end: what ends the statement ends it, too.
my $holder = wire();
my $gated = by_ranges('gate(id, 3000), v', 'large');
$node->ask(gate_sql('STABLE PARALLEL SAFE COST 1'));
for my $end ('cancel', 'statement_timeout', 'terminate', 'leave', 'worker')
{
	my $other = wire(options => '-c client_connection_check_interval=20ms');

	$holder->simple('SELECT pg_advisory_lock(1)');
	$other->simple(q{SET statement_timeout = '1s'}) if $end eq 'statement_timeout';
	$other->send_simple($gated);
	ok(wait_until(sub { $node->ask(
		q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted}) > 0 }), "$end: a process waits")
		if $end ne 'statement_timeout';
	$other->cancel if $end eq 'cancel';
	$other->close if $end eq 'leave';
	$node->ask('SELECT pg_terminate_backend(' . $other->backend . ')') if $end eq 'terminate';
	$node->ask(q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE backend_type = 'parallel worker'}) if $end eq 'worker';
	# the leader may wait for the lock itself
	$holder->simple('SELECT pg_advisory_unlock(1)') if $end eq 'worker';
	if ($end ne 'leave')
	{
		$answer = $other->answer;
		my %states = (cancel => '57014', statement_timeout => '57014', terminate => '57P01', worker => '57P01');
		# who is terminated while it sends says nothing
		my $silent = $end eq 'terminate' ? $answer->{gone} && !defined $answer->{error}
			: $end eq 'worker' && $answer->{rows} == 100000;
		ok($silent || ($answer->{error} // '') =~ /^$states{$end}/, "$end: the statement ends")
			or diag $answer->{error} // $answer->{rows};
	}
	ok($node->nothing_left, 'nothing is left');
	ok(is_gone($other), 'the session has ended') if $end eq 'leave' || $end eq 'terminate';
	$holder->simple('SELECT pg_advisory_unlock_all()');
}

# The first row of a binary COPY is too long to be formed, and comes from the only worker when the leader has formed all
# others: it is in one message with what COPY puts before it.
my $long_first = by_ranges(q{CASE gate(id, 50) WHEN 50 THEN repeat('long ', 3500000) ELSE v END AS v}, 'marked');
for my $target ('STDOUT', "'$file'")
{
	my $copy = "COPY ($long_first) TO $target (FORMAT binary)";

	$answer = same_file($wire, "the first row is too long to be formed, to $target", $copy);
	my $native = $answer->{native};
	$wire->simple('SET max_parallel_workers_per_gather = 1');
	$holder->simple('SELECT pg_advisory_lock(1)');
	same_file($wire, "and comes late, to $target", $copy, $native, sub {
		ok(wait_until(sub { $node->ask(q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'parallel worker'
			AND wait_event = 'advisory'}) == 1 }), 'a worker waits');
		ok(wait_until(sub { $node->ask(q{SELECT wait_event_type = 'Extension' FROM pg_stat_activity WHERE pid = }
			. $wire->backend) eq 't' }), 'and its leader');
		$holder->simple('SELECT pg_advisory_unlock(1)');
	});
	$wire->simple('RESET max_parallel_workers_per_gather');
}
unlink $file;

# the service is killed while rows are on their way: all of them are right, or the error says so
for my $part (0, 1, 8)
{
	$wire->send_simple($large);
	$wire->read_some while length $wire->{input} < 1000000 * $part;
	kill 'KILL', $service;
	$answer = $wire->answer;
	ok($answer->{rows} == 100000 || ($answer->{error} // '') =~ /^58000 the sort service lost the rows/,
		"the service killed in part $part: $answer->{rows} rows") or diag $answer->{error};
	$service = $node->wait_service($service);
	ok($node->nothing_left, 'nothing is left');
	is($wire->simple($all)->{rows}, 6000, 'the session goes on');
}

# a client that goes away in the middle
for my $part (0, 1, 5)
{
	my $other = wire();
	$other->send_simple($large);
	$other->read_some while length $other->{input} < 1000000 * $part;
	$other->close;
	ok(is_gone($other), "gone in part $part");
	ok($node->nothing_left, 'nothing is left');
}

# a backend that is terminated while its client does not read; a worker that is
my $other = wire();
$other->send_simple($large);
ok(waits_for_client($other), 'a client does not read');
$node->ask('SELECT pg_terminate_backend(' . $other->backend . ')');
ok(is_gone($other), 'terminated while its client does not read');
ok($other->answer->{gone}, 'the client sees the end');
ok($node->nothing_left, 'nothing is left');
$wire->send_simple($large);
$wire->read_some while length $wire->{input} < 100000;
my ($worker) = $node->parallel_workers;
$node->ask("SELECT pg_terminate_backend($worker)") if defined $worker;
$answer = $wire->answer;
ok($answer->{rows} == 100000 || ($answer->{error} // '') =~ /^57P01/, 'a worker that is terminated');
ok($node->nothing_left, 'nothing is left');
is($wire->simple($all)->{rows}, 6000, 'the session goes on');
unlike($node->log_text, qr/PANIC|TRAP|XX000|leak|still referenced/, 'the server lived through it all');

# a worker that is killed takes all sessions with it, as ever
$wire->simple(q{SET temp_file_limit = '1MB'; SET work_mem = '64kB'});
$wire->send_simple($large);
ok(waits_for_client($wire) && workers_wait(), 'a client does not read, and workers wait');
kill 'KILL', ($node->parallel_workers)[0];
ok($wire->answer->{gone}, 'a worker that is killed ends the session');
$service = $node->wait_service($service);
my $new = wire();
same($new, 'after the restart', sub { $new->simple($all) });

# so does the session's own process
$new->send_simple($large);
$new->read_some while length $new->{input} < 100000;
kill 'KILL', $new->backend;
ok($new->answer->{gone}, 'a session that is killed ends');
$service = $node->wait_service($service);
ok($node->nothing_left, 'nothing is left');
$_->close for @wires;
$node->remove;

done_testing;
