# Btrees built by gpusort: of every shape, with the tuples of what PostgreSQL builds where several processes write
# pages, byte for byte the same where one does, and good by amcheck; errors as PostgreSQL's; nothing left behind by
# cancels, and by the service's and the server's ends.  gpusort.min_rows = 0 makes ranges small and many.
use strict;
use warnings;

use GpuSortNode;
use Test::More;

my $node = GpuSortNode->new('main');
$node->init(
	conf => [ 'wal_level = replica', 'max_wal_senders = 4', 'max_parallel_workers = 8', 'max_worker_processes = 12',
		'gpusort.index_builds = on', 'gpusort.min_rows = 0', 'gpusort.log_decisions = on',
		'max_parallel_maintenance_workers = 2', 'min_parallel_table_scan_size = 0', 'autovacuum = off', 'fsync = off' ]);
$node->start;
my $service = $node->wait_service;
plan skip_all => 'no amcheck and pageinspect'
	unless eval { $node->safe_psql('postgres', 'CREATE EXTENSION amcheck; CREATE EXTENSION pageinspect'); 1 };
my $check = $node->check_index;
$node->safe_psql('postgres', q{
	CREATE EXTENSION gpusort;
	CREATE TYPE feeling AS ENUM ('sad', 'ok', 'happy');
	CREATE COLLATION ignore_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
	CREATE TABLE d AS SELECT i, (i * 7919 % 20011) AS k, i % 97 AS few, 1 AS same, nullif(i % 50, 7) AS holes,
		md5(i::text) AS m, CASE WHEN i % 3 > 0 THEN 'Word ' || i % 900 END AS w,
		repeat(md5((i % 700)::text), 1 + i % 60) || i AS wide, (i % 1000)::numeric / 7 AS n,
		CASE i % 100 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' WHEN 2 THEN '0' ELSE (i % 500)::float8 / 3 END AS f,
		md5((i % 5000)::text)::uuid AS u, timestamptz '2020-01-01' + i % 4000 * interval '1 hour' AS t,
		(enum_range(NULL::feeling))[1 + i % 3] AS e, i % 2 = 0 AS b, ARRAY[i % 10, i % 7] AS a,
		int4range(i % 100, i % 100 + 5) AS r, ('10.0.' || i % 250 || '.1')::inet AS net,
		(i % 300)::text::bytea AS y, ('c' || i % 40)::char(8) AS c, ('n' || i % 60)::name AS nm,
		jsonb_build_object('k', i % 33) AS j, (i * 4294967296)::int8 AS l
	FROM generate_series(1, 20000) i;
	CREATE TABLE empty (k int);
	CREATE TABLE one AS SELECT 1 AS k;
	CREATE TABLE excluded AS SELECT i AS k FROM generate_series(1, 3000) i;
	VACUUM ANALYZE d;
});

# Where an index lies; asked for all of them, and again for one that is new.
my %paths;

sub path
{
	my ($on, $index) = @_;

	%paths = map { split /\|/ } split /\n/, $on->safe_psql('postgres',
		q{SELECT relname, pg_relation_filepath(oid) FROM pg_class WHERE relkind = 'i' AND relname !~ '^pg_'})
		unless $index =~ /_\d+$/ && $paths{$index};
	return $paths{$index};
}

# The pages of an index, without the places of their records in the log and their checksums.
sub pages
{
	my ($index, $on) = @_;
	$on //= $node;
	my $path = $on->data_dir . '/' . path($on, $index);
	open my $file, '<:raw', $path or die "$path: $!";
	local $/;
	my $bytes = <$file>;
	return [ map { substr($_, 12) } unpack('(a8192)*', $bytes) ];
}

# What of such a page is used: a record of a page leaves out what is between its line pointers and its tuples.
sub used
{
	my ($page) = @_;
	my ($lower, $upper) = unpack 'vv', $page;
	return substr($page, 0, $lower - 12) . substr($page, $upper - 12);
}

sub is_same
{
	my ($index, $other, $what) = @_;
	my ($pages, $others) = (pages($index), pages($other));
	my @differ = grep { ($pages->[$_] // '') ne ($others->[$_] // '') } 0 .. ($#$pages > $#$others ? $#$pages : $#$others);

	is(scalar @differ, 0,
		"$what: page for page what PostgreSQL builds") or diag("pages @differ[0 .. ($#differ > 9 ? 9 : $#differ)]");
	return;
}

sub is_good
{
	my ($index, $what) = @_;

	is($node->safe_psql('postgres', "SELECT " . sprintf($check, "'$index'")), '', "$what: amcheck");
	return;
}

# The leaf tuples of indexes whose names match, in order, without how they are deduplicated: by name "pages digest".
sub tuples
{
	my ($pattern) = @_;

	return map { split /\|/ } split /\n/, $node->safe_psql('postgres', qq{
		SELECT c.relname, pg_relation_size(c.oid) / 8192 || ' ' ||
			coalesce((SELECT count(*) || ' ' || md5(string_agg(t.tid || i.data, ' ' ORDER BY b, i.itemoffset, t.n))
				FROM generate_series(1, pg_relation_size(c.oid) / 8192 - 1) b, bt_page_stats(c.relname, b) s,
					bt_page_items(c.relname, b) i, unnest(coalesce(i.tids, ARRAY[i.htid])) WITH ORDINALITY t (tid, n)
				WHERE s.btpo_level = 0 AND (s.btpo_next = 0 OR i.itemoffset > 1)), '')
		FROM pg_class c WHERE c.relname ~ '$pattern'});
}

# An index has the tuples of another, on pages of which there are no more than one more for each border of ranges.
sub has_same_tuples
{
	my ($ours, $theirs, $ranges, $what) = @_;
	my ($our_pages, $our_tuples) = split / /, $ours, 2;
	my ($their_pages, $their_tuples) = split / /, $theirs, 2;

	is($our_tuples, $their_tuples, "$what: the same tuples");
	ok($our_pages <= $their_pages + 1.5 * ($ranges || 1), "$what: no more pages than there are borders")
		or diag("$our_pages pages, not $their_pages, in " . ($ranges || 1) . ' ranges');
	return;
}

# Runs SQL with gpusort's builds or without; returns what it says.
sub with_builds
{
	my ($setting, $sql) = @_;
	my ($out, $err);

	$node->psql('postgres', "SET gpusort.force = on; SET gpusort.index_builds = $setting; $sql", stderr => \$err,
		stdout => \$out);
	return $err =~ s/^psql:<stdin>:\d+: //gmr;
}

# Returns true if the log, from there on, says that gpusort has begun to build an index,
# and PostgreSQL has not ended it.
sub built
{
	my ($index, $offset) = @_;
	my $log = substr($node->log_text, $offset);

	return $log =~ /gpusort: building index "$index"/ && $log !~ /gpusort: index "$index" is left to PostgreSQL/;
}

my $en_us = $node->safe_psql('postgres',
	q{SELECT quote_ident(collname) FROM pg_collation WHERE collname IN ('en_US', 'en_US.utf8') LIMIT 1});
my @shapes = (
	[ 'int', 'd (k)' ], [ 'in order', 'd (i)' ], [ 'int8', 'd (l)' ], [ 'descending', 'd (k DESC)' ],
	[ 'NULLs', 'd (holes)' ], [ 'NULLs first', 'd (holes NULLS FIRST)' ],
	[ 'descending, NULLs last', 'd (holes DESC NULLS LAST)' ],
	[ 'text "C"', 'd (m COLLATE "C")' ], [ 'words', 'd (w)' ], [ 'text of ICU', 'd (w COLLATE "en-x-icu")' ],
	[ 'not deterministic', 'd (w COLLATE ignore_case)' ], [ 'long text', 'd (wide)' ],
	[ 'pattern', 'd (w text_pattern_ops)' ],
	[ 'numeric', 'd (n)' ], [ 'float8', 'd (f)' ], [ 'uuid', 'd (u)' ], [ 'timestamptz', 'd (t)' ], [ 'enum', 'd (e)' ],
	[ 'bool', 'd (b)' ], [ 'array', 'd (a)' ], [ 'range', 'd (r)' ], [ 'inet', 'd (net)' ], [ 'bytea', 'd (y)' ],
	[ 'char', 'd (c)' ],
	[ 'jsonb', 'd (j)' ], [ 'three columns', 'd (few, w DESC, k)' ], [ 'many duplicates', 'd (same)' ],
	[ 'few values', 'd (few)' ],
	[ 'INCLUDE', 'd (few) INCLUDE (m, holes)' ], [ 'fillfactor', 'd (k) WITH (fillfactor = 40)' ],
	[ 'not deduplicated', 'd (few) WITH (deduplicate_items = off)' ], [ 'expression', 'd (lower(w), (k % 10))' ],
	[ 'partial', 'd (m) WHERE few < 5' ], [ 'partial, nothing', 'd (m) WHERE k < 0' ], [ 'empty', 'empty (k)' ],
	[ 'one row', 'one (k)' ],
	[ 'unique', 'd (i)', 'UNIQUE' ], [ 'unique text', 'd (m)', 'UNIQUE' ],
	[ 'unique, NULLs', 'd ((nullif(i % 3, 1) + i))', 'UNIQUE' ],
	[ 'unique, INCLUDE', 'd (i) INCLUDE (w)', 'UNIQUE' ]);
push @shapes, [ 'text of the C library', "d (w COLLATE $en_us)" ],
	[ 'digests of the C library', "d (m COLLATE $en_us, i)" ] if $en_us;

# All of them by PostgreSQL, by gpusort in several processes, and by gpusort in one
my $number = 0;
my (%sql, @theirs);
for my $shape (@shapes)
{
	my ($what, $on, $unique) = (@$shape, '');

	$number++;
	$sql{$_} .= "CREATE $unique INDEX ${_}_$number ON $on;\n" for 'theirs', 'ours', 'alone';
	push @theirs, "theirs_$number";
}
my $offset = length $node->log_text;
is(with_builds('off', $sql{theirs}), '', 'PostgreSQL builds indexes');
unlike(substr($node->log_text, $offset), qr/gpusort: building/, 'without gpusort');
$offset = length $node->log_text;
my $counted = $node->safe_psql('postgres', 'SELECT index_builds FROM gpusort_stats');
is(with_builds('on', $sql{ours}), '', 'gpusort builds them');
is($node->safe_psql('postgres', 'SELECT index_builds FROM gpusort_stats') - $counted,
	scalar @shapes, 'they are counted');
is(with_builds('on',
	'ALTER TABLE d SET (parallel_workers = 0);' . $sql{alone} . 'ALTER TABLE d RESET (parallel_workers)'), '',
		'and in one process');
$node->safe_psql('postgres', 'CHECKPOINT');
my $built = substr($node->log_text, $offset);
my %good = map { $_ => 1 } split /\n/, $node->safe_psql('postgres', q{
	SELECT relname FROM (SELECT relname, } . sprintf($check, 'oid') . q{ FROM pg_class WHERE relname ~ '^ours_') c});
my %tuples = tuples('^(ours|theirs)_');
my %ranges = $built =~ /index "(\w+)" is loaded in (\d+) ranges/g;
cmp_ok(scalar keys %ranges, '>', 30, 'most were loaded by several processes');
unlike($built, qr/PostgreSQL builds/, 'none was given up');
$number = 0;
for my $shape (@shapes)
{
	my $what = $shape->[0];

	$number++;
	like($built, qr/building index "ours_$number"/, "$what: gpusort builds it");
	ok($good{"ours_$number"}, "$what: amcheck");
	has_same_tuples($tuples{"ours_$number"}, $tuples{"theirs_$number"}, $ranges{"ours_$number"}, $what);
	is_same("alone_$number", "theirs_$number", "$what, in one process");
}
$node->safe_psql('postgres', 'DROP INDEX ' . join(', ', map { ($_, s/theirs/ours/r, s/theirs/alone/r) } @theirs));

# What is not gpusort's
for my $shape ([ 'hash', 'INDEX other ON d USING hash (k)' ], [ 'brin', 'INDEX other ON d USING brin (k)' ],
	[ 'name', 'INDEX other ON d (nm)' ])
{
	my ($what, $sql) = @$shape;
	my $offset = length $node->log_text;

	is(with_builds('on', "CREATE $sql"), '', "$what: built");
	ok(!built('other', $offset), "$what: by PostgreSQL");
	$node->safe_psql('postgres', 'DROP INDEX other');
}

# What is faster by the model of time, in one process: texts under a language's collation, but no integers
for my $case ([ 'd (w COLLATE "en-x-icu")', 1 ], [ 'd (k)', '' ])
{
	my ($on, $chosen) = @$case;
	my $from = length $node->log_text;

	is(with_builds('on',
		"SET gpusort.force = off; ALTER TABLE d SET (parallel_workers = 0); CREATE INDEX chosen ON $on; DROP INDEX chosen"),
			'',
		"$on: built");
	is(built('chosen', $from), $chosen, "$on: " . ($chosen ? 'by gpusort' : 'not by gpusort'));
	like(substr($node->log_text, $from), qr/index "chosen" is left to PostgreSQL: gpusort would save too little/,
		'the log says why not') unless $chosen;
}
$node->safe_psql('postgres', 'ALTER TABLE d RESET (parallel_workers)');

# Duplicates
for my $case ([ 'd (few)' ], [ 'd (w)' ], [ 'one_more (k)' ], [ 'd (same, holes) NULLS NOT DISTINCT' ],
	[ 'pair (a) NULLS NOT DISTINCT' ])
{
	$node->safe_psql('postgres',
		q{CREATE TABLE IF NOT EXISTS one_more AS SELECT least(i, 5000) AS k FROM generate_series(1, 5001) i;
		CREATE TABLE IF NOT EXISTS pair AS SELECT nullif(least(i, 3001), 3001) AS a FROM generate_series(1, 3002) i});
	my ($on) = @$case;
	my ($theirs) = with_builds('off', "\\set VERBOSITY verbose\nCREATE UNIQUE INDEX u ON $on");
	my $offset = length $node->log_text;
	my $ours = with_builds('on', "\\set VERBOSITY verbose\nCREATE UNIQUE INDEX u ON $on");

	# which of several duplicates is told of depends on the sort
	s/^(?:LOCATION|CONTEXT).*\n?//mg, s/\(.*\)=\((?!5000\)).*\)/(...)/ for $theirs, $ours;
	like($ours, qr/23505.*could not create unique index "u"/, "$on: duplicates are an error");
	is($ours, $theirs, "$on: PostgreSQL's");
	ok(built('u', $offset), "$on: found by gpusort");
}
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_class WHERE relname = 'u'}), 0, 'there is no such index');

# Constraints, and all ways to build anew
$node->safe_psql('postgres', q{
	CREATE TABLE p (k int, v text) PARTITION BY RANGE (k);
	CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (5000);
	CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (5000) TO (30000);
	INSERT INTO p SELECT k, m FROM d;
	CREATE UNLOGGED TABLE unlogged AS SELECT k, m FROM d;
	CREATE MATERIALIZED VIEW mv AS SELECT k, m FROM d;
	CREATE TABLE c AS SELECT i, k, m FROM d;
});
$offset = length $node->log_text;
is(with_builds('on', q{
	ALTER TABLE c ADD PRIMARY KEY (i);
	ALTER TABLE c ADD CONSTRAINT c_later UNIQUE (i, m) DEFERRABLE INITIALLY DEFERRED;
	CREATE INDEX p_v ON p (v);
	CREATE INDEX unlogged_m ON unlogged (m);
	CREATE INDEX mv_k ON mv (k);
}), '', 'constraints, partitions, unlogged tables');
ok(built($_, $offset), "$_ was built by gpusort") for 'c_pkey', 'c_later', 'p1_v_idx', 'p2_v_idx', 'unlogged_m', 'mv_k';
for my $case ([ 'REINDEX INDEX c_pkey', 'c_pkey' ], [ 'REINDEX TABLE c', 'c_later' ],
	[ 'CLUSTER c USING c_pkey', 'c_pkey' ],
	[ 'VACUUM FULL c', 'c_later' ], [ 'REFRESH MATERIALIZED VIEW mv', 'mv_k' ],
	[ 'ALTER TABLE c ALTER i TYPE int8', 'c_pkey' ],
	[ 'TRUNCATE unlogged; INSERT INTO unlogged SELECT k, m FROM d; REINDEX INDEX unlogged_m', 'unlogged_m' ])
{
	my ($sql, $index) = @$case;
	my $from = length $node->log_text;

	is(with_builds('on', $sql), '', $sql);
	ok(built($index, $from), "$sql: by gpusort");
	is_good($index, $sql);
}
is_good($_, $_) for 'p1_v_idx', 'p2_v_idx', 'mv_k';
my $concurrently = length $node->log_text;
is(with_builds('on', 'REINDEX TABLE CONCURRENTLY c'), '', 'concurrently, too');
ok(built($_, $concurrently), "$_: by gpusort") for 'c_pkey_ccnew', 'c_later_ccnew';
is_good($_, "$_ after that") for 'c_pkey', 'c_later';
is($node->safe_psql('postgres', q{
	SET gpusort.force = on;
	CREATE TEMPORARY TABLE temporary AS SELECT k, m FROM d;
	CREATE INDEX temporary_m ON temporary (m);
	SELECT } . sprintf($check, q{'temporary_m'})), '', 'a temporary table');
ok(built('temporary_m', 0), 'it is by gpusort');
# A table that wants no workers: gpusort builds in one process
for my $sql ('CREATE INDEX none_1 ON d (k); CREATE INDEX none_2 ON d (m)', 'REINDEX TABLE c', 'VACUUM FULL c')
{
	my $table = $sql =~ /none/ ? 'd' : 'c';
	my $from = length $node->log_text;

	is(with_builds('on',
		"ALTER TABLE $table SET (parallel_workers = 0); $sql; ALTER TABLE $table RESET (parallel_workers)"),
		'', "without workers: $sql");
	ok(built($_, $from), "without workers: $_ by gpusort") for $sql =~ /none/ ? ('none_1', 'none_2') : ('c_pkey',
		'c_later');
}
is(with_builds('on', 'CREATE INDEX none_1 ON d (k)'), "ERROR:  relation \"none_1\" already exists", 'errors are told');
$node->safe_psql('postgres', 'DROP INDEX none_1, none_2');

# Where a session allows no workers for maintenance PostgreSQL does not ask the planner, and builds.  What users' code
# sees of that setting, and does with it, is what it would be without gpusort: in functions of expression indexes and
# of ALTER TABLE, in event triggers, nested statements and rolled back ones.
$node->safe_psql('postgres', q{
	CREATE TABLE seen (who text, workers text);
	CREATE FUNCTION note(who text, x int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
	BEGIN
		RAISE NOTICE '% sees %', who, current_setting('max_parallel_maintenance_workers');
		RETURN x;
	END $$;
	CREATE FUNCTION sets() RETURNS event_trigger LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM note(tg_event, 1);
		EXECUTE current_setting('my.statement');
	END $$;
	CREATE TABLE small AS SELECT i AS k FROM generate_series(1, 5) i;
	CREATE EVENT TRIGGER sets_start ON ddl_command_start WHEN TAG IN ('CREATE INDEX', 'ALTER TABLE')
		EXECUTE FUNCTION sets();
	CREATE EVENT TRIGGER sets_end ON ddl_command_end WHEN TAG IN ('CREATE INDEX', 'ALTER TABLE')
		EXECUTE FUNCTION sets()});
for my $statement ('SET max_parallel_maintenance_workers = 3', 'SET LOCAL max_parallel_maintenance_workers = 3',
	'RESET max_parallel_maintenance_workers', 'REFRESH MATERIALIZED VIEW mv')
{
	my @seen;

	for my $setting ('off', 'on')
	{
		push @seen, with_builds($setting, qq{
			SET my.statement = '$statement';
			SET max_parallel_maintenance_workers = 0;
			CREATE INDEX of_note ON small (note('expression', k));
			ALTER TABLE small ALTER k TYPE int USING note('alter', k), ADD UNIQUE (k);
			DO \$\$ BEGIN RAISE NOTICE 'then %', current_setting('max_parallel_maintenance_workers'); END \$\$;
			BEGIN;
			SET LOCAL max_parallel_maintenance_workers = 0;
			SAVEPOINT s;
			CREATE INDEX of_note_2 ON small (note('second', k));
			ROLLBACK TO s;
			DO \$\$ BEGIN RAISE NOTICE 'rolled back %', current_setting('max_parallel_maintenance_workers'); END \$\$;
			COMMIT;
			DO \$\$ BEGIN RAISE NOTICE 'in the end %', current_setting('max_parallel_maintenance_workers'); END \$\$;
			DROP INDEX of_note; ALTER TABLE small DROP CONSTRAINT small_k_key});
	}
	like($seen[0], qr/ddl_command_start sees 0.*expression sees \d.*in the end \d/s,
		"$statement by a trigger: users' code sees the setting");
	is($seen[1], $seen[0], 'and the same with builds by gpusort');
}
$node->safe_psql('postgres', 'DROP EVENT TRIGGER sets_start; DROP EVENT TRIGGER sets_end; DROP TABLE small, seen');
is($node->safe_psql('postgres',
	q{SELECT indnkeyatts, condeferrable FROM pg_index JOIN pg_constraint ON conindid = indexrelid
	WHERE conname = 'c_later'}),
	'2|t', 'the constraint is what it was');
is(with_builds('on',
	'BEGIN; INSERT INTO c (i, m) SELECT i + 1000000, m FROM c LIMIT 5000; DELETE FROM c WHERE i % 3 = 0; COMMIT'), '',
	'tables can be changed then');
is_good($_, "$_ changed") for 'c_pkey', 'c_later';

# What is PostgreSQL's to build, and is counted
my $declined = $node->safe_psql('postgres', 'SELECT declined_builds FROM gpusort_stats');
is(with_builds('on', 'ALTER TABLE excluded ADD CONSTRAINT excluded_k EXCLUDE (k WITH =)'), '',
	'an exclusion constraint');
like($node->log_text, qr/index "excluded_k" is left to PostgreSQL: it is for an exclusion constraint/,
	'PostgreSQL builds it');
is($node->safe_psql('postgres', 'SET gpusort.enable = off; CREATE INDEX enabled ON d (k); DROP INDEX enabled; '
	. 'CREATE TABLE without (k int PRIMARY KEY); SELECT declined_builds FROM gpusort_stats'), $declined + 1,
	'it counts as declined, what has no rows or is not asked for does not');
is(with_builds('on', 'INSERT INTO excluded VALUES (7)'), 'ERROR:  conflicting key value violates exclusion constraint '
	. qq{"excluded_k"\nDETAIL:  Key (k)=(7) conflicts with existing key (k)=(7).}, 'it excludes');

# Rows that are dead to all but an old snapshot are in the index, and nobody's duplicates; chains of HOT updates that
# the index breaks make it one for later snapshots only.
my $old = $node->session;
$node->safe_psql('postgres', q{
	CREATE TABLE dead (k int, v int) WITH (fillfactor = 50);
	INSERT INTO dead SELECT i, 0 FROM generate_series(1, 6000) i;
});
$old->run('BEGIN ISOLATION LEVEL REPEATABLE READ');
is($old->run('SELECT count(*) FROM one'), 1, 'an old snapshot');
$node->safe_psql('postgres', q{
	UPDATE dead SET k = -k WHERE k % 3 = 0;
	UPDATE dead SET k = -k WHERE k < 0;
	UPDATE dead SET v = 1 WHERE k % 5 = 0;
	DELETE FROM dead WHERE k % 7 = 0;
	INSERT INTO dead SELECT i, 2 FROM generate_series(7, 6000, 7) i;
});
for my $on ('dead (k)', 'dead (v)', 'dead (k, v)')
{
	my $unique = $on eq 'dead (v)' ? '' : 'UNIQUE';
	my $from = length $node->log_text;

	is(with_builds('off', "CREATE $unique INDEX theirs ON $on"), '', "$on: PostgreSQL");
	is(with_builds('on', "CREATE $unique INDEX ours ON $on"), '', "$on: gpusort");
	ok(built('ours', $from), "$on: it does");
	is_good('ours', "$on, of dead rows");
	my %both = tuples('^(ours|theirs)$');
	has_same_tuples($both{ours}, $both{theirs}, 100, "$on, of dead rows");
	is($node->safe_psql('postgres',
		q{SELECT count(DISTINCT (indcheckxmin, indisvalid)) FROM pg_index
		WHERE indexrelid IN ('ours'::regclass, 'theirs'::regclass)}),
		1, "$on: for the same snapshots");
	$node->safe_psql('postgres', 'DROP INDEX ours, theirs');
}
is($old->run('SELECT sum(k) FROM dead'), '18003000', 'the old snapshot sees what it saw');
$old->run('COMMIT');

# In the middle: a function waits at one row until nobody holds lock 1.
$node->safe_psql('postgres', q{
	CREATE FUNCTION gate(i int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
	BEGIN
		IF i = 15000 THEN
			PERFORM pg_advisory_lock_shared(1);
			PERFORM pg_advisory_unlock_shared(1);
		END IF;
		RETURN i;
	END $$;
});
my $holder = $node->session;
my $builder = $node->session;
$builder->run('SET gpusort.force = on');

sub files
{
	my @files = glob $node->data_dir . '/base/*/*';
	return scalar @files;
}

# Begins to build an index, and returns when the build waits.
sub begin_waiting
{
	$holder->run('SELECT pg_advisory_lock(1)');
	$builder->send('CREATE INDEX waits ON d (gate(i))');
	return $node->poll_query_until('postgres',
		q{SELECT count(*) > 0 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted});
}

sub nothing_left
{
	return $node->poll_query_until('postgres', q{
		SELECT (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'parallel worker') = 0
			AND (SELECT count(*) FROM gpusort_jobs) = 0});
}

ok(begin_waiting(), 'a build waits');
# The leader goes on to the next phase where it is a worker that waits at the row.
ok($node->poll_query_until('postgres', q{SELECT phase IN ('building index: scanning table', }
	. q{'building index: sorting live tuples') AND blocks_total > 0 FROM pg_stat_progress_create_index}),
	'it tells of its progress');
my $before = files();
$node->safe_psql('postgres', 'SELECT pg_cancel_backend(' . $builder->backend . ')');
like(($builder->result)[1], qr/canceling statement/, 'it is cancelled');
$holder->run('SELECT pg_advisory_unlock(1)');
ok(nothing_left(), 'nothing of it runs');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_class WHERE relname = 'waits'}), 0, 'nor is there an index');
ok(wait_files($before - 1), 'nor its file');

# A relation that goes has its file until the next checkpoint.
sub wait_files
{
	my ($most) = @_;
	return wait_until(sub { $node->safe_psql('postgres', 'CHECKPOINT'); return files() <= $most })
		|| diag(files() . " files, not $most") && 0;
}

ok(begin_waiting(), 'a build waits again');
$offset = length $node->log_text;
kill 'KILL', $service;
$holder->run('SELECT pg_advisory_unlock(1)');
is(($builder->result)[1], '', 'it goes on though the service was killed');
like(substr($node->log_text, $offset), qr/index "waits" is left to PostgreSQL/, 'by PostgreSQL');
is_good('waits', 'the index');
$node->wait_service($service);
$node->safe_psql('postgres', 'DROP INDEX waits');

# The server ends at once: replay makes the same index; a standby has it, too.
$node->backup('backup');
my $standby = GpuSortNode->new('standby');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->append_conf('postgresql.conf', 'gpusort.allowed = off');
$standby->start;
is(with_builds('on', 'CREATE INDEX replayed ON d (m); CREATE UNIQUE INDEX replayed_too ON d (i) INCLUDE (wide)'), '',
	'indexes are built');
$node->safe_psql('postgres', 'CHECKPOINT');
my %pages = map { $_ => pages($_) } 'replayed', 'replayed_too';
$node->wait_for_catchup($standby);
$standby->safe_psql('postgres', 'CHECKPOINT');
for my $index (sort keys %pages)
{
	ok(join('', map { used($_) } @{ pages($index, $standby) }) eq join('', map { used($_) } @{ $pages{$index} }),
		"a standby has $index");
	is($standby->safe_psql('postgres', "SELECT bt_index_check('$index', true)"), '', "$index is good there");
}
$standby->stop;
is(with_builds('on', 'DROP INDEX replayed; CREATE INDEX replayed ON d (m)'), '', 'an index is built');
$node->stop('immediate');
$node->start;
is_good($_, "$_ after replay") for 'replayed', 'replayed_too';

ok(begin_waiting_again(), 'a build waits for the third time');

sub begin_waiting_again
{
	$holder = $node->session;
	$builder = $node->session;
	$builder->run('SET gpusort.force = on');
	return begin_waiting();
}
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_class WHERE relname = 'waits'}), 0,
	'an immediate stop leaves no index');
is_good('replayed', 'the other');
$node->stop;

# Without a record of what is built in the transaction that makes the table
my $minimal = GpuSortNode->new('minimal');
$minimal->init(conf => [ 'wal_level = minimal', 'max_wal_senders = 0', 'gpusort.index_builds = on',
	'gpusort.min_rows = 0', 'gpusort.force = on',
	'gpusort.log_decisions = on', 'wal_skip_threshold = 0' ]);
$minimal->start;
$minimal->wait_service;
$minimal->safe_psql('postgres', q{
	CREATE EXTENSION gpusort;
	CREATE EXTENSION amcheck;
	BEGIN;
	CREATE TABLE d AS SELECT i, md5(i::text) AS m FROM generate_series(1, 20000) i;
	CREATE INDEX d_m ON d (m);
	COMMIT;
});
$minimal->stop('immediate');
$minimal->start;
like($minimal->log_text, qr/gpusort: building index "d_m"/, 'a build with wal_level = minimal');
is($minimal->safe_psql('postgres', 'SELECT ' . sprintf($check, q{'d_m'})), '',
	'it is good after an immediate stop');
$minimal->stop;

done_testing();
