\set ECHO none
-- Few first rows are found by the process itself: they are PostgreSQL's, for all key types and orders.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on

CREATE TYPE gs.top_mood AS ENUM ('bad', 'so so', 'good', 'best');
CREATE DOMAIN gs.top_domain AS int4;
CREATE TABLE gs.top AS
SELECT i AS id, (i * 7919::bigint) % 5003 AS i8, ((i * 7919) % 5003 - 2500)::int4 AS i4, (i * 31 % 601)::int2 AS i2, i % 3 = 0 AS b, i % 50 AS few, 1 AS same,
	   CASE i % 97 WHEN 0 THEN 'NaN' WHEN 1 THEN 'Infinity' ELSE (i * 7919 % 5003 / 7.0)::text END::float8 AS f8,
	   CASE i % 97 WHEN 0 THEN 'NaN' WHEN 1 THEN '-Infinity' ELSE (i * 7919 % 5003 / 7.0)::text END::float4 AS f4,
	   CASE i % 101 WHEN 0 THEN 'NaN' WHEN 1 THEN '-Infinity' ELSE ((i * 7919 % 5003)::numeric / 7)::text END::numeric AS n, (repeat('1', i % 3 * 30) || i)::numeric AS digits,
	   date '2026-11-29' + i * 7919 % 5003 AS d, time '00:00' + (i * 7919 % 5003) * interval '1 s' AS ti, timestamp '2026-11-29' + (i * 7919 % 5003) * interval '1 s' AS ts,
	   timestamptz '2026-11-29 UTC' + (i * 7919 % 5003) * interval '1 s' AS tz, (i * 7919 % 5003) * interval '1 s' AS iv, (i * 7919 % 5003)::money AS m,
	   md5((i % 3000)::text)::uuid AS u, decode(md5((i % 3000)::text), 'hex') AS by, (i * 7919 % 5003)::bit(20) AS bits, ('10.0.' || i % 256 || '.' || i % 7)::inet AS net,
	   (enum_range(NULL::gs.top_mood))[1 + i % 4] AS e, ARRAY[i % 50, i] AS a, int4range(i % 50, i % 50 + i % 9) AS r, to_jsonb(i * 7919 % 5003) AS j, (i % 50)::gs.top_domain AS dom,
	   md5((i % 3000)::text) COLLATE "C" AS c, (ARRAY['', 'a', 'A', 'ab', 'a b', 'a-b', E'\u00e4', 'Z', 'zz', '10', '9', '_', '.', 'ch', 'co-op', 'coop'])[1 + i % 16] || i % 40 AS t,
	   (ARRAY['', ' ', 'a', 'A', ' a', '-a', 'a ', E'\u00e9a', 'ea'])[1 + i % 9] AS w, repeat('same ', 30) || i % 211 AS long, ('x' || i % 300)::char(9) AS bp, ('n' || i % 300)::name AS na,
	   CASE WHEN i % 4 > 0 THEN i * 7919::bigint % 5003 END AS nil, NULL::int4 AS none, i AS up, -i AS down, CASE WHEN i % 1000 = 0 THEN repeat('wide', 5000) END AS wide
FROM generate_series(1, 6000) i;
VACUUM ANALYZE gs.top;

CREATE FUNCTION gs.method(query text) RETURNS text LANGUAGE sql AS $$ SELECT gs.node(query)->>'Sort Method' $$;

-- as gs.compare_results, of rows that no others equal, and of the values alone where some do
CREATE FUNCTION gs.compare_top(key text, clause text) RETURNS text LANGUAGE sql AS
$$ SELECT string_agg(DISTINCT gs.compare_results(query), ', ')
   FROM unnest(ARRAY[format('SELECT id FROM gs.top ORDER BY %s, id %s', key, clause), format('SELECT * FROM gs.top ORDER BY %s, id %s', key, clause),
					 format('SELECT %s FROM gs.top ORDER BY %1$s %s', regexp_replace(key, ' (DESC|NULLS).*', ''), clause)]) query $$;

SELECT * FROM no_plan();
SET max_parallel_workers_per_gather = 0;

-- which sorts
SELECT is(gs.method('SELECT * FROM gs.top ORDER BY ' || clause), 'first rows', clause)
FROM unnest(ARRAY['i8 LIMIT 1', 'i8 LIMIT 100', 't DESC LIMIT 100', 'i8 LIMIT 10 OFFSET 20', 'few FETCH FIRST 10 ROWS WITH TIES', 'i8 LIMIT (SELECT 10)']) clause;
SELECT isnt(gs.method('SELECT * FROM gs.top ORDER BY ' || clause), 'first rows', clause || ': not')
FROM unnest(ARRAY['i8', 'i8 LIMIT ALL', 'i8 LIMIT 1001', 'i8 OFFSET 10', 'i8 LIMIT 10 OFFSET 2000']) clause;
SELECT is(gs.method('SELECT id FROM (SELECT id, i8 FROM gs.top ORDER BY i8, id OFFSET 0) s LIMIT 10'), 'first rows', 'through a subquery');
SELECT isnt(gs.method('SELECT id FROM (SELECT id, i8 FROM gs.top ORDER BY i8, id OFFSET 0) s WHERE id % 2 = 0 LIMIT 10'), 'first rows', 'not through a condition');
SELECT isnt(gs.method('SELECT row_number() OVER (ORDER BY i8) FROM gs.top LIMIT 7'), 'first rows', 'nor through a window');
SELECT isnt(gs.method('SELECT few FROM (SELECT few, id FROM gs.top ORDER BY few, id OFFSET 0) s ORDER BY few FETCH FIRST 3 ROWS WITH TIES'), 'first rows', 'nor ties in fewer columns than it sorts by');
SET work_mem = '64kB';
SELECT isnt(gs.method('SELECT * FROM gs.top ORDER BY i8 LIMIT 200'), 'first rows', 'nor rows beyond work_mem');
RESET work_mem;

-- rows, and those that were dropped
SELECT is((node->>'Rows')::int + (node->>'Rows Removed by Limit')::int, 6000, 'all rows are told') FROM gs.node('SELECT * FROM gs.top ORDER BY i8 LIMIT 10') node;
SELECT cmp_ok((node->>'Rows Removed Before Sort')::int, '>', 5700, 'nearly all before they were copied') FROM gs.node('SELECT * FROM gs.top ORDER BY i8 LIMIT 10') node;

-- all types and orders
SELECT is(gs.compare_top(key || direction, clause), 'same', key || direction || ' ' || clause)
FROM unnest(ARRAY['i8', 'i4', 'i2', 'b', 'few', 'same', 'f8', 'f4', 'n', 'digits', 'd', 'ti', 'ts', 'tz', 'iv', 'm', 'u', 'by', 'bits', 'net', 'e', 'a', 'r', 'j', 'dom', 'c', 't', 'w', 'long', 'bp',
				  'na', 'nil', 'none', 'up', 'down', 't COLLATE "C"', 'w COLLATE "POSIX"']) key,
	 unnest(ARRAY['', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST']) direction, unnest(ARRAY['LIMIT 70']) clause;
SELECT is(gs.compare_top(key, clause), 'same', key || ' ' || clause)
FROM unnest(ARRAY['i8', 'f8 DESC', 'n', 't', 'w DESC', 'few, t DESC', 'e, nil NULLS FIRST', 't, few DESC, n', 'none, b, c', 'b DESC, w, j', 'nil, a DESC', '-i8', 'i8 % 7, t || few']) key,
	 unnest(ARRAY['LIMIT 0', 'LIMIT 1', 'LIMIT 3 OFFSET 2', 'LIMIT 1500', 'LIMIT 1000', 'LIMIT 400 OFFSET 500', 'LIMIT 5 OFFSET 7000', 'LIMIT 1 OFFSET 1499']) clause;
SELECT is((SELECT coalesce(string_agg(DISTINCT gs.compare_top(format('%s COLLATE %I%s', key, collname, direction), 'LIMIT 70'), ', '), 'same')
		   FROM unnest(ARRAY['t', 'w', 'long']) key, unnest(ARRAY['', ' DESC']) direction,
				(SELECT collname FROM pg_collation WHERE collprovider = provider::"char" AND collname IN ('en-x-icu', 'de_DE.utf8', 'de_DE', 'en_US') AND collencoding IN (-1, 6) ORDER BY 1 LIMIT 1) c), 'same', 'another collation, of ' || provider)
FROM unnest(ARRAY['i', 'c']) provider;

-- a column that is sorted by as another type, which it is as it lies
CREATE TABLE gs.top_oid AS SELECT i AS id, (i * 715827882::bigint % 4294967296)::oid AS o FROM generate_series(1, 3000) i;
ANALYZE gs.top_oid;
SELECT is(gs.compare_top(key || direction, 'LIMIT 70'), 'same', key || direction) FROM unnest(ARRAY['i4::oid', 'dom::oid', 'i4::gs.top_domain']) key, unnest(ARRAY['', ' DESC', ' DESC NULLS LAST']) direction;
SELECT is(gs.compare_results('SELECT o::int4, id FROM gs.top_oid ORDER BY o::int4' || direction || ', id LIMIT 9'), 'same', 'oid as int4' || direction) FROM unnest(ARRAY['', ' DESC']) direction;

-- ties
SELECT is(gs.compare_results(format('SELECT count(*), sum(id) FROM (SELECT * FROM gs.top ORDER BY %s FETCH FIRST %s ROWS WITH TIES) s', key, n)), 'same', format('%s WITH TIES %s', key, n))
FROM unnest(ARRAY['few', 'few DESC', 'e', 'b, few', 'same', 'nil', 'nil NULLS FIRST', 'none', 't', 'w DESC', 'f8 DESC', 'n NULLS FIRST', 'up', 'down']) key, unnest(ARRAY[0, 1, 10, 119, 120, 121, 1000]) n;
SELECT is(gs.compare_results('SELECT count(*), sum(few) FROM (SELECT * FROM gs.top ORDER BY few OFFSET 130 FETCH FIRST 5 ROWS WITH TIES) s'), 'same', 'WITH TIES behind an OFFSET');
SELECT is(gs.compare_results('SELECT few, count(*) FROM (SELECT few, id FROM (SELECT few, id FROM gs.top ORDER BY few, id OFFSET 0) s ORDER BY few FETCH FIRST 3 ROWS WITH TIES) s GROUP BY few'), 'same', 'ties in fewer columns');

-- conditions, volatile ones too; what is computed
CREATE SEQUENCE gs.top_calls;
CREATE FUNCTION gs.top_call(x int) RETURNS int LANGUAGE plpgsql VOLATILE AS $$ BEGIN PERFORM nextval('gs.top_calls'); RETURN x; END $$;
SELECT is(gs.compare_results(query), 'same', query)
FROM unnest(ARRAY['SELECT id FROM gs.top WHERE few < 15 ORDER BY i8, id LIMIT 20', 'SELECT id FROM gs.top WHERE t LIKE ''a%'' AND i4 > 0 ORDER BY ts DESC, id LIMIT 20', 'SELECT id FROM gs.top WHERE nil IS NULL ORDER BY up DESC LIMIT 20',
				  'SELECT id FROM gs.top WHERE false ORDER BY i8 LIMIT 20', 'SELECT id FROM gs.top WHERE id = 77 ORDER BY i8 LIMIT 20', 'SELECT id, i8 * 2 AS twice FROM gs.top ORDER BY twice DESC, id LIMIT 20',
				  'SELECT id, wide FROM gs.top ORDER BY wide, id LIMIT 20', 'SELECT id, wide FROM gs.top ORDER BY wide NULLS FIRST, id DESC LIMIT 20', 'SELECT * FROM gs.top ORDER BY id % 1000, id LIMIT 9',
				  'SELECT ctid FROM gs.top ORDER BY ctid LIMIT 20', 'SELECT tableoid, id FROM gs.top ORDER BY i8, id LIMIT 20',
				  'SELECT x.id, y.id FROM gs.top x JOIN gs.top y USING (i8) ORDER BY y.n DESC, x.id, y.id LIMIT 20', 'SELECT few, count(*) FROM gs.top GROUP BY few ORDER BY 2 DESC, 1 LIMIT 5',
				  'SELECT count(*) FROM gs.top WHERE id IN (SELECT id FROM gs.top ORDER BY i8 DESC, id LIMIT 30)', 'SELECT id FROM gs.top x WHERE i8 = (SELECT max(i8) FROM gs.top y WHERE y.few = x.few) ORDER BY i4 LIMIT 7']) query;
SET gpusort.force = on;
SELECT is((SELECT count(*) FROM (SELECT id FROM gs.top WHERE gs.top_call(few) < 50 ORDER BY i8 LIMIT 10) s), 10::bigint, 'a volatile condition');
SELECT is(nextval('gs.top_calls'), 6001::bigint, 'is asked of all rows');
SELECT is((SELECT count(*) FROM (SELECT id, gs.top_call(few) FROM gs.top ORDER BY i8 LIMIT 10) s), 10::bigint, 'a volatile column');
RESET gpusort.force;

-- conditions that are asked after the threshold, as nobody can tell, and such as may not be
SELECT is(gs.compare_results(format('SELECT id FROM gs.top WHERE %s ORDER BY %s, id LIMIT 25', condition, key)), 'same', format('%s by %s', condition, key))
FROM unnest(ARRAY['nil < 2500', 'none IS NULL', 'nil IS NULL AND b', 'c = ''c4ca4238a0b923820dcc509a6f75849b'' OR few < 9', 'up % 7 = 3', 'length(t) > 3', 'n > 100', 'wide IS NULL', 'i8 < 0']) condition,
	 unnest(ARRAY['i8', 'f8 DESC', 'n', 'n DESC NULLS LAST', 't', 't DESC NULLS FIRST', 'w', 'nil', 'nil DESC', 'none', 'i2']) key;
SELECT is(gs.compare_results(format('SELECT count(*), sum(id) FROM (SELECT * FROM gs.top WHERE nil < 2500 ORDER BY %s FETCH FIRST 20 ROWS WITH TIES) s', key)), 'same', 'ties of a condition by ' || key)
FROM unnest(ARRAY['few', 'few DESC', 'w', 'e', 'n', 'i2']) key;
-- rows that conditions are asked of and do not fulfil
CREATE FUNCTION gs.top_filtered(query text) RETURNS int LANGUAGE plpgsql SET gpusort.enable = on SET gpusort.force = on SET gpusort.min_rows = 0 AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) ' || query INTO plan;
	RETURN jsonb_path_query_first(plan::jsonb, 'strict $.** ? (@."Node Type" == "Seq Scan")')->'Rows Removed by Filter';
END $$;
CREATE TABLE gs.top_far AS
SELECT id, i8, n, ts, d, c, few, repeat('1', id % 5) AS s1, nullif(repeat('2', id % 4), '') AS s2, repeat('3', id % 7) AS s3, '4'::text AS s4, nullif(t, 'a1') AS s5, w AS s6, c AS s7, t AS s8, nullif(few, 7) AS far, bp, na FROM gs.top;
ALTER TABLE gs.top_far DROP COLUMN s4, ADD COLUMN late int DEFAULT 3;
ANALYZE gs.top_far;
SELECT is(gs.compare_results(query), 'same', query), cmp_ok(gs.top_filtered(query), '<', 1500, 'asked of few: ' || condition || ' by ' || key)
FROM unnest(ARRAY['n > 100', 'n IN (1, 2, 3, 1.5) IS NOT TRUE AND NOT n > 600.5', 'ts < date ''2026-11-29'' + 1 AND d >= timestamp ''2026-11-29 12:00''', 's8 LIKE ''%a%''', 'bp NOT LIKE ''x1_%\\\\'' AND na LIKE ''n%''',
				  'far < 25', 'far IN (1, 2, 3) IS NOT TRUE OR late IS NULL', 'late = 3 AND far > 20 AND s7 <> ''''']) condition, unnest(ARRAY['i8', 'n DESC', 'c', 'c DESC NULLS LAST']) key,
	 format('SELECT * FROM gs.top_far WHERE %s ORDER BY %s, id LIMIT 20', condition, key) query;
SELECT is(gs.compare_results(query), 'same', query)
FROM unnest(ARRAY['far < 25', 'late = 3 AND s8 LIKE ''%a%''', 's8 LIKE ANY (ARRAY[''%a%'', ''b%''])', 'gs.top_call(far) > 30', 'length(s8) > far', 's2 IS NULL AND far IS NULL']) condition, unnest(ARRAY['far, id', 'bp DESC, id', 's8, id', 'late, s3 DESC, id', 'd, id', 's2 NULLS FIRST, id']) key,
	 format('SELECT * FROM gs.top_far WHERE %s ORDER BY %s LIMIT 20', condition, key) query;
SELECT is(gs.compare_results(query), 'same', query) FROM unnest(ARRAY['SELECT far, s8, id FROM gs.top_far WHERE s8 <> '''' ORDER BY d, id LIMIT 30', 'SELECT far + 1, id FROM gs.top_far WHERE s8 > ''a'' ORDER BY far + 1, id LIMIT 30',
	'SELECT run, count(*), sum(id), max(far) FROM (VALUES (1), (2), (700)) v (run), LATERAL (SELECT id, far FROM gs.top_far WHERE n > run AND far < 10 * run ORDER BY i8, id LIMIT 20) s GROUP BY run ORDER BY run']) query;

-- those that may fail are asked of all rows, LIKE by a pattern that is not sound, and what runs for the first time, too
SET gpusort.force = on;
SELECT throws_ok(format('SELECT id FROM gs.top WHERE %s ORDER BY %s LIMIT 10', condition, key), state, NULL, condition || ' by ' || key)
FROM (VALUES ('1 / (id - 6000) < 1', '22012'), ('few < 50 AND 1 / (id - 6000) < 1', '22012'), ('n < 0 OR n >= 0 AND 1 / (id - 6000) < 1', '22012'),
			 ('id < 5990 OR n > (SELECT 1 / (count(*) - count(*)) FROM gs.top)', '22012'), ('id < 5990 OR n > 1 / (SELECT count(*) - count(*) FROM gs.top)', '22012'),
			 ('c NOT LIKE ''' || left(md5('2999'), 31) || '\''', '22025')) c (condition, state), unnest(ARRAY['up', 't', 'c']) key;
RESET gpusort.force;

-- the estimate is far off; rows grow wider than work_mem has room for
CREATE FUNCTION gs.top_believed(n int, width int) RETURNS TABLE (id int, k int, pad text) LANGUAGE sql STABLE ROWS 1000000 AS $$ SELECT i, (i * 7919::bigint % 50021)::int, repeat('x', width) FROM generate_series(1, n) i OFFSET 0 $$;
SET work_mem = '256kB';
SELECT is(gs.compare_results(format('SELECT * FROM gs.top_believed(%s, %s) ORDER BY k, id LIMIT %s', rows, width, lim)), 'same', format('%s rows of %s bytes, LIMIT %s', rows, width, lim))
FROM (VALUES (20, 1, 100), (3000, 1, 1000), (3000, 1000, 1000), (3000, 1000, 200), (3000, 3000, 1000), (0, 1, 10), (1, 1, 1)) v (rows, width, lim);
SELECT is(gs.compare_results('SELECT k, count(*) FROM (SELECT * FROM (SELECT id, id % 3 AS k, pad FROM gs.top_believed(3000, 1000)) b ORDER BY k FETCH FIRST 10 ROWS WITH TIES) s GROUP BY k'), 'same', 'ties that do not fit');
RESET work_mem;
DROP FUNCTION gs.top_believed;

-- run again, with other bounds, for other rows
SET enable_material = off;
SET enable_memoize = off;
CREATE TABLE gs.top_bounds AS SELECT * FROM (VALUES (1, 3), (2, 1400), (3, 2), (4, 1500), (5, 900), (6, 1), (7, 7000), (8, 0), (9, NULL)) v (run, rows);
ANALYZE gs.top_bounds;
SELECT is(gs.compare_results(query), 'same', what)
FROM (VALUES ('other bounds', 'SELECT run, count(*), sum(id), max(i8) FROM gs.top_bounds, LATERAL (SELECT id, i8 FROM gs.top ORDER BY i8, id LIMIT rows) s GROUP BY run ORDER BY run'),
	  ('other rows', 'SELECT run, count(*), sum(id), max(t) FROM gs.top_bounds, LATERAL (SELECT id, t FROM gs.top WHERE id % run = 0 ORDER BY t DESC, id LIMIT rows) s GROUP BY run ORDER BY run'),
	  ('other offsets', 'SELECT run, count(*), sum(id), max(few) FROM gs.top_bounds, LATERAL (SELECT id, few FROM gs.top ORDER BY few, id LIMIT 10 OFFSET rows) s GROUP BY run ORDER BY run'),
	  ('other ties', 'SELECT run, count(*), sum(id) FROM gs.top_bounds, LATERAL (SELECT id FROM gs.top WHERE run < 9 ORDER BY few FETCH FIRST coalesce(rows, 1) ROWS WITH TIES) s GROUP BY run ORDER BY run'),
	  ('the same rows', 'SELECT run, id FROM gs.top_bounds LEFT JOIN (SELECT id FROM gs.top ORDER BY n DESC, id LIMIT 20) s ON id > run ORDER BY run, id')) v (what, query);
RESET enable_material;
RESET enable_memoize;

-- bounds known when the query runs
SET plan_cache_mode = force_generic_plan;
SET gpusort.force = on;
PREPARE top_bounded(bigint, bigint) AS SELECT id FROM gs.top ORDER BY up DESC LIMIT $1 OFFSET $2;
SELECT is(gs.rows(format('EXECUTE top_bounded(%s, %s)', lim, off)), gs.native_rows(format('SELECT id FROM gs.top ORDER BY up DESC LIMIT %s OFFSET %s', lim, off)), format('parameters %s, %s', lim, off))
FROM (VALUES ('3', '0'), ('NULL', '5900'), ('500', '100'), ('2', '2'), ('70000', '0'), ('0', '5'), ('10', '9000')) v (lim, off);
DEALLOCATE top_bounded;
RESET plan_cache_mode;

-- there and back
BEGIN;
DECLARE top_c SCROLL CURSOR FOR SELECT id FROM gs.top ORDER BY i8, id LIMIT 300 OFFSET 10;
SELECT is(gs.fetch('top_c', 'ALL'), gs.native_rows('SELECT id FROM gs.top ORDER BY i8, id LIMIT 300 OFFSET 10'), 'a cursor forward');
SELECT is(gs.fetch('top_c', 'BACKWARD ALL'), ARRAY(SELECT r FROM unnest(gs.native_rows('SELECT id FROM gs.top ORDER BY i8, id LIMIT 300 OFFSET 10')) WITH ORDINALITY u (r, n) ORDER BY n DESC), 'backward');
SELECT is(gs.fetch('top_c', 'ABSOLUTE 7'), gs.native_rows('SELECT id FROM gs.top ORDER BY i8, id LIMIT 1 OFFSET 16'), 'to a row');
SELECT is(gs.fetch('top_c', 'BACKWARD 1'), gs.native_rows('SELECT id FROM gs.top ORDER BY i8, id LIMIT 1 OFFSET 15'), 'one back');
DECLARE top_junk SCROLL CURSOR FOR SELECT id FROM gs.top ORDER BY -i8, id LIMIT 30;
SELECT is(gs.fetch('top_junk', 'ALL'), gs.native_rows('SELECT id FROM gs.top ORDER BY -i8, id LIMIT 30'), 'by a key that nobody sees');
SELECT is(gs.fetch('top_junk', 'FIRST'), gs.native_rows('SELECT id FROM gs.top ORDER BY -i8, id LIMIT 1'), 'and back');
COMMIT;
RESET gpusort.force;

-- no service is asked, which is what the statistics count
SELECT sorts AS sorts_before, rows AS rows_before, fallbacks AS fallbacks_before FROM gpusort_stats \gset
SELECT is(cardinality(gs.forced_rows('SELECT id FROM gs.top ORDER BY i8, id LIMIT 5')), 5, 'a sort');
SELECT is((SELECT ROW(sorts - :sorts_before, rows - :rows_before, fallbacks - :fallbacks_before)::text FROM gpusort_stats), '(1,6000,0)', 'is counted with all of its rows');

-- parts of an Append
CREATE TABLE gs.top_parted (id int, k int, t text) PARTITION BY RANGE (id);
CREATE TABLE gs.top_part1 PARTITION OF gs.top_parted FOR VALUES FROM (0) TO (2000);
CREATE TABLE gs.top_part2 (dropped int, t text, k int, id int);
ALTER TABLE gs.top_part2 DROP dropped;
ALTER TABLE gs.top_parted ATTACH PARTITION gs.top_part2 FOR VALUES FROM (2000) TO (7000);
INSERT INTO gs.top_parted SELECT id, i4, t FROM gs.top;
ANALYZE gs.top_parted;
SELECT is(gs.compare_results(format('SELECT * FROM gs.top_parted ORDER BY %s, id LIMIT %s', key, lim)), 'same', format('partitions by %s LIMIT %s', key, lim))
FROM unnest(ARRAY['k', 'k DESC', 't', 'k % 9, t']) key, unnest(ARRAY[1, 10, 1000]) lim;
SELECT is(gs.compare_results('SELECT * FROM ((SELECT id, i8 FROM gs.top ORDER BY i8, id LIMIT 50) UNION ALL (SELECT id, few FROM gs.top ORDER BY few, id LIMIT 50)) s ORDER BY i8, id LIMIT 20'), 'same', 'branches');

-- several processes, each with its part
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT alike(gs.forced_plan('SELECT * FROM gs.top ORDER BY i8 LIMIT 40'), '%GpuSortIngest%', 'a parallel plan');
SELECT is(gs.method('SELECT * FROM gs.top ORDER BY i8 LIMIT 40'), 'first rows', 'each process finds its own');
SELECT is(gs.compare_results(format('SELECT * FROM gs.top ORDER BY %s, id LIMIT %s', key, lim)), 'same', format('in parallel: %s LIMIT %s', key, lim))
FROM unnest(ARRAY['i8', 'i8 DESC', 'nil DESC', 'n', 't DESC', 'w', 'c', 'few, t', 'up', 'down', 'wide', '-i8']) key, unnest(ARRAY['1', '40', '1500', '10 OFFSET 7000', '0']) lim;
SELECT is(gs.compare_results(format('SELECT count(*), sum(id) FROM (SELECT * FROM gs.top ORDER BY %s FETCH FIRST %s ROWS WITH TIES) s', key, n)), 'same', format('in parallel: %s WITH TIES %s', key, n))
FROM unnest(ARRAY['few', 'e', 'w DESC', 'nil']) key, unnest(ARRAY[1, 10, 1000]) n;
SET parallel_leader_participation = off;
SELECT is(gs.compare_results('SELECT * FROM gs.top ORDER BY i8, id LIMIT 40'), 'same', 'without the leader');
RESET parallel_leader_participation;
SET max_parallel_workers = 0;
SELECT is(gs.compare_results('SELECT * FROM gs.top ORDER BY i8, id LIMIT 40'), 'same', 'without workers');
RESET max_parallel_workers;
SET work_mem = '64kB';
SELECT is(gs.compare_results('SELECT * FROM gs.top ORDER BY wide NULLS LAST, id LIMIT 60'), 'same', 'rows that do not fit');
RESET work_mem;
SELECT rows AS rows_before FROM gpusort_stats \gset
SELECT is(cardinality(gs.forced_rows('SELECT id FROM gs.top ORDER BY i8, id LIMIT 5')), 5, 'a parallel sort');
SELECT is((SELECT rows - :rows_before FROM gpusort_stats), 6000::bigint, 'is counted with all of its rows');
SELECT is(gs.compare_results('SELECT run, count(*), sum(id) FROM gs.top_bounds, LATERAL (SELECT id FROM gs.top WHERE id > run ORDER BY i8, id LIMIT rows) s GROUP BY run ORDER BY run'), 'same', 'run again in parallel');
SELECT * FROM finish();
DROP TABLE gs.top, gs.top_bounds, gs.top_parted;
DROP FUNCTION gs.method, gs.compare_top, gs.top_call;
DROP SEQUENCE gs.top_calls;
DROP TYPE gs.top_mood;
DROP DOMAIN gs.top_domain;
