\set ECHO none
-- Workers of statements that PostgreSQL runs without: what is fetched piece by piece, and INSERT of what is selected.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on

CREATE TABLE gs.fe AS SELECT i AS id, (i::bigint * 7919) % 5003 AS k, ('t' || md5((i % 997)::text)) COLLATE "C" AS t, i % 10 AS few FROM generate_series(1, 20000) i;
CREATE TABLE gs.fe_other AS SELECT i AS id, (i * 31) % 4001 AS k FROM generate_series(1, 6000) i;
ANALYZE gs.fe;
ANALYZE gs.fe_other;

SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
-- with workers rows are theirs, without the leader's
SET parallel_leader_participation = off;

-- the process that has computed a row
CREATE FUNCTION gs.process(int) RETURNS int LANGUAGE plpgsql STABLE PARALLEL SAFE COST 1 AS 'BEGIN RETURN pg_backend_pid(); END';
-- 'workers', if these have computed all rows, 'leader', or 'both'; NULL: there are none
CREATE FUNCTION gs.who(processes int[]) RETURNS text LANGUAGE sql AS $$
	SELECT CASE WHEN NOT bool_or(p = pg_backend_pid()) THEN 'workers' WHEN bool_and(p = pg_backend_pid()) THEN 'leader' ELSE 'both' END FROM unnest(processes) p
$$;
-- who has computed the rows of a cursor that is open
CREATE FUNCTION gs.who_fetches(cursor_name text, movement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	r record;
	processes int[];
BEGIN
	FOR r IN EXECUTE format('FETCH %s FROM %I', movement, cursor_name) LOOP
		processes := processes || r.p;
	END LOOP;
	RETURN gs.who(processes);
END $$;

-- Declares cursor n natively and cursor g through GpuSort, with such a node in its plan.
CREATE FUNCTION gs.declare_both(options text, query text, node text DEFAULT 'GpuSortIngest') RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	SET LOCAL gpusort.enable = off;
	EXECUTE format('DECLARE n %s FOR %s', options, query);
	SET LOCAL gpusort.enable = on;
	SET LOCAL gpusort.force = on;
	SET LOCAL gpusort.min_rows = 0;
	IF gs.forced_plan(format('DECLARE c %s FOR %s', options, query)) NOT LIKE '%' || node || '%' THEN
		RAISE 'no % in the plan', node;
	END IF;
	EXECUTE format('DECLARE g %s FOR %s', options, query);
	SET LOCAL gpusort.force = off;
END $$;
-- 'same' when both give the same.
CREATE FUNCTION gs.both(VARIADIC movements text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	movement text;
	difference text;
BEGIN
	FOREACH movement IN ARRAY movements LOOP
		difference := gs.difference(gs.fetch('n', movement), gs.fetch('g', movement));
		IF difference <> 'same' THEN
			RETURN format('after %s: %s', movement, difference);
		END IF;
	END LOOP;
	RETURN 'same';
END $$;

SELECT * FROM no_plan();

-- plans: PostgreSQL's are of one process, and GpuSort's have workers if they have no others
SELECT is(gs.forced_plan('DECLARE c CURSOR FOR SELECT id FROM gs.fe ORDER BY k, id'),
		  E'Custom Scan (GpuSort)\n  Sort Key: k, id\n  ->  Gather\n        Workers Planned: 2\n        ->  Parallel Custom Scan (GpuSortIngest)\n              ->  Parallel Seq Scan on fe\n',
		  'a cursor''s plan');
SELECT is(gs.forced_plan('DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT id FROM gs.fe ORDER BY k, id'), gs.forced_plan('DECLARE c CURSOR FOR SELECT id FROM gs.fe ORDER BY k, id'),
		  'of one that scrolls, and is held');
SELECT alike(gs.forced_plan('DECLARE c CURSOR FOR SELECT id, row_number() OVER (ORDER BY k, id) FROM gs.fe'), '%GpuSortExchange%Gather%GpuSortOutput%WindowAgg%', 'a window is computed by all processes');
SELECT alike(gs.forced_plan('DECLARE c SCROLL CURSOR FOR SELECT id, row_number() OVER (ORDER BY k, id) FROM gs.fe'), '%WindowAgg%GpuSort%Gather%GpuSortIngest%', 'and by one for a cursor that scrolls');
SET gpusort.parallel_output = off;
SELECT alike(gs.forced_plan('DECLARE c CURSOR FOR SELECT id, row_number() OVER (ORDER BY k, id) FROM gs.fe'), '%WindowAgg%GpuSort%Gather%GpuSortIngest%', 'or with gpusort.parallel_output off');
RESET gpusort.parallel_output;
SELECT alike(gs.forced_plan('DECLARE c CURSOR FOR SELECT few, count(DISTINCT k) FROM gs.fe GROUP BY few'), '%GpuSortExchange%Gather%GroupAggregate%', 'groups are computed by all processes');
SELECT alike(gs.forced_plan('DECLARE c CURSOR FOR SELECT count(DISTINCT k) FROM gs.fe'), '%Aggregate%GpuSortExchange%Gather%GpuSortOutput%Unique%', 'and what an aggregate reads');
SELECT alike(gs.forced_plan('DECLARE c CURSOR FOR SELECT few, count(DISTINCT k) AS n FROM gs.fe GROUP BY few ORDER BY n, few'), 'Custom Scan (GpuSort)%GpuSortExchange%Gather%', 'below another sort');
SELECT unalike(gs.forced_plan('DECLARE c CURSOR FOR SELECT f.id, o.n FROM gs.fe f, LATERAL (SELECT count(DISTINCT x.k) AS n FROM gs.fe_other x WHERE x.id < f.few OFFSET 0) o ORDER BY f.k, f.id'), '%GpuSortExchange%', 'not where a nested loop reads it again');
SELECT unalike(gs.forced_plan('DECLARE c CURSOR FOR SELECT id, random(), row_number() OVER (ORDER BY k, id) FROM gs.fe'), '%Gather%', 'not with volatile functions');
SELECT alike(gs.forced_plan('DECLARE c CURSOR FOR SELECT DISTINCT k, id FROM gs.fe ORDER BY k, id LIMIT 5000'), '%Limit%Gather%', 'below DISTINCT and LIMIT');
SET gpusort.parallel_output = off;
SELECT alike(gs.forced_plan('DECLARE c CURSOR FOR SELECT DISTINCT k, id FROM gs.fe ORDER BY k, id LIMIT 5000'), '%Unique%GpuSortIngest%', 'which one process computes with gpusort.parallel_output off');
RESET gpusort.parallel_output;
SELECT unalike(gs.forced_plan('DECLARE c CURSOR FOR SELECT id FROM gs.fe ORDER BY k, id FOR UPDATE'), '%Gather%', 'not FOR UPDATE');
SELECT unalike(gs.forced_plan('DECLARE c CURSOR FOR SELECT id, random() FROM gs.fe ORDER BY k, id'), '%Gather%', 'not with volatile functions');
SELECT unalike(gs.forced_plan('DECLARE c CURSOR FOR SELECT id FROM gs.fe WHERE txid_current() > 0 ORDER BY k, id'), '%Gather%', 'not with what workers must not do');
SELECT unalike(gs.forced_plan('DECLARE c CURSOR FOR SELECT few, count(*) FROM gs.fe GROUP BY few'), '%Gather%', 'not without a sort');
SELECT unalike(gs.forced_plan('DECLARE c CURSOR FOR SELECT id, (SELECT max(id) FROM gs.fe_other) FROM gs.fe ORDER BY k, id'), '%Partial%', 'no other workers');
SELECT unalike(gs.forced_plan('DECLARE c CURSOR FOR WITH c AS MATERIALIZED (SELECT * FROM gs.fe ORDER BY k, id) SELECT id FROM c'), '%Gather%', 'none below a CTE');
SET gpusort.parallel_cursors = off;
SELECT unalike(gs.forced_plan('DECLARE c CURSOR FOR SELECT id FROM gs.fe ORDER BY k, id'), '%Gather%', 'not with gpusort.parallel_cursors off');
RESET gpusort.parallel_cursors;
SET max_parallel_workers_per_gather = 0;
SELECT unalike(gs.forced_plan('DECLARE c CURSOR FOR SELECT id FROM gs.fe ORDER BY k, id'), '%Gather%', 'not where there are to be no workers');
SET max_parallel_workers_per_gather = 2;
-- an index gives first rows soon, as PostgreSQL wants it
CREATE TABLE gs.fe_indexed AS SELECT i AS id, (i * 7919) % 30011 AS k, repeat('x', 100) AS pad FROM generate_series(1, 30000) i;
CREATE INDEX ON gs.fe_indexed (k);
VACUUM ANALYZE gs.fe_indexed;
CREATE FUNCTION gs.chosen_plan(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	plan text := '';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || statement LOOP
		plan := plan || line || E'\n';
	END LOOP;
	RETURN plan;
END $$;
SELECT alike(gs.chosen_plan('DECLARE c CURSOR FOR SELECT id FROM gs.fe_indexed ORDER BY k'), 'Index Scan%', 'an index scan stays');

-- who takes rows in
BEGIN;
SET LOCAL gpusort.force = on;
DECLARE c CURSOR FOR SELECT id, gs.process(id) AS p FROM gs.fe ORDER BY k, id;
SELECT is(gs.who_fetches('c', '1'), 'workers', 'workers take in what a cursor gives');
SELECT is(gs.who_fetches('c', 'ALL'), 'workers', 'to its end');
SET LOCAL gpusort.parallel_cursors = off;
DECLARE d CURSOR FOR SELECT id, gs.process(id) AS p FROM gs.fe ORDER BY k, id;
SELECT is(gs.who_fetches('d', 'ALL'), 'leader', 'and not with gpusort.parallel_cursors off');
COMMIT;
SELECT is((SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'parallel worker' AND leader_pid = pg_backend_pid()), 0::bigint, 'no worker is left');

-- between fetches anything may happen
BEGIN;
SELECT gs.declare_both('CURSOR', 'SELECT * FROM gs.fe ORDER BY k, id') \g /dev/null
SELECT is(gs.both('3', '100'), 'same', 'first rows');
INSERT INTO gs.fe SELECT -i, i, '', 0 FROM generate_series(1, 1000) i;
CREATE TEMP TABLE fe_temp AS SELECT 1 AS one;
CREATE SEQUENCE gs.fe_sequence;
SELECT is(nextval('gs.fe_sequence'), 1::bigint, 'nextval() between fetches');
SELECT is(gs.both('100'), 'same', 'after INSERT, CREATE TEMP TABLE, CREATE SEQUENCE and nextval()');
SAVEPOINT a;
DELETE FROM gs.fe;
SELECT gs.both('100') AS in_savepoint \gset
ROLLBACK TO a;
SELECT is(:'in_savepoint'::text, 'same', 'after DELETE in a savepoint');
SELECT is(gs.both('100'), 'same', 'after a rollback to it');
SELECT is((SELECT count(*) FROM (SELECT id FROM gs.fe ORDER BY k OFFSET 0) s), 21000::bigint, 'another parallel query');
SELECT is(gs.both('ALL', '1'), 'same', 'to the end');
ROLLBACK;

-- the first fetch in a savepoint, which is rolled back, released, or fails
BEGIN;
SELECT gs.declare_both('CURSOR', 'SELECT * FROM gs.fe ORDER BY t, id') \g /dev/null
SAVEPOINT a;
SELECT gs.both('10') AS first \gset
ROLLBACK TO a;
SELECT is(:'first'::text, 'same', 'first rows in a savepoint');
SELECT is(gs.both('10', 'ALL'), 'same', 'and the others when it was rolled back');
COMMIT;
BEGIN;
SELECT gs.declare_both('CURSOR', 'SELECT * FROM gs.fe ORDER BY t, id') \g /dev/null
SAVEPOINT a;
SELECT is(gs.both('10'), 'same', 'first rows in a savepoint');
RELEASE a;
SELECT is(gs.both('10', 'ALL'), 'same', 'and the others when it was released');
COMMIT;
CREATE FUNCTION gs.fetch_fails_at(i int, at int) RETURNS int LANGUAGE plpgsql STABLE PARALLEL SAFE COST 1 AS 'BEGIN RETURN 1 / (i - at); END';
BEGIN;
SET LOCAL gpusort.force = on;
DECLARE c CURSOR FOR SELECT id FROM gs.fe ORDER BY k + 0 * gs.fetch_fails_at(id, 15000), id;
SAVEPOINT a;
SELECT throws_ok('FETCH c', '22012', NULL, 'an error in a worker');
SELECT throws_ok('FETCH c', NULL, NULL, 'after which the cursor is of no use');
ROLLBACK TO a;
DECLARE d CURSOR FOR SELECT id, gs.process(id) AS p FROM gs.fe ORDER BY k, id;
SELECT is(gs.who_fetches('d', 'ALL'), 'workers', 'and another has its workers');
INSERT INTO gs.fe_other VALUES (-1, -1);
ROLLBACK;
DO $$
DECLARE
	r record;
	n int := 0;
BEGIN
	SET LOCAL gpusort.force = on;
	FOR i IN 1 .. 3 LOOP
		BEGIN
			FOR r IN SELECT id FROM gs.fe ORDER BY k + 0 * gs.fetch_fails_at(id, 15000), id LOOP
				n := n + 1;
			END LOOP;
		EXCEPTION WHEN division_by_zero THEN
			n := n + 1000;
		END;
	END LOOP;
	IF n <> 3000 THEN
		RAISE 'n is %', n;
	END IF;
END $$;

-- SCROLL, and WITH HOLD
BEGIN;
SELECT gs.declare_both('SCROLL CURSOR', 'SELECT * FROM gs.fe ORDER BY k, id') \g /dev/null
SELECT is(gs.both('LAST', 'FIRST', '100', 'BACKWARD 50', 'ABSOLUTE 15000', 'RELATIVE -7', 'ABSOLUTE 0', 'ALL', 'BACKWARD ALL', 'ALL'), 'same', 'SCROLL');
COMMIT;
BEGIN;
SELECT gs.declare_both('SCROLL CURSOR', 'SELECT id, row_number() OVER (ORDER BY k, id) FROM gs.fe') \g /dev/null
SELECT is(gs.both('10', 'BACKWARD 5', 'LAST', 'ABSOLUTE 7', 'ALL', 'FIRST'), 'same', 'SCROLL, a window');
COMMIT;
BEGIN;
SELECT gs.declare_both('SCROLL CURSOR', 'SELECT id FROM gs.fe ORDER BY k, id LIMIT 3000 OFFSET 50') \g /dev/null
SELECT is(gs.both('BACKWARD 1', '1', 'LAST', 'ABSOLUTE 7', 'ALL', 'BACKWARD ALL', 'ABSOLUTE 0', '1'), 'same', 'SCROLL, LIMIT');
COMMIT;
BEGIN;
SELECT gs.declare_both('SCROLL CURSOR WITH HOLD', 'SELECT * FROM gs.fe ORDER BY k, id') \g /dev/null
SELECT is(gs.both('100'), 'same', 'WITH HOLD before the commit');
COMMIT;
SELECT is(gs.both('100', 'BACKWARD 150', 'ALL'), 'same', 'and after it');
CLOSE n;
CLOSE g;
BEGIN;
SELECT gs.declare_both('CURSOR WITH HOLD', 'SELECT * FROM gs.fe ORDER BY k, id') \g /dev/null
COMMIT;
SELECT is(gs.both('100', 'ALL'), 'same', 'WITH HOLD, all of it at the commit');
CLOSE n;
CLOSE g;

-- nothing, and not all of it
BEGIN;
SELECT gs.declare_both('SCROLL CURSOR', 'SELECT * FROM gs.fe WHERE few > 10 ORDER BY k, id') \g /dev/null
SELECT is(gs.both('1', 'BACKWARD 1', 'FIRST', 'LAST', 'ALL'), 'same', 'no row');
COMMIT;
BEGIN;
SET LOCAL gpusort.force = on;
DECLARE c CURSOR FOR SELECT id FROM gs.fe ORDER BY k, id;
DECLARE d CURSOR FOR SELECT id FROM gs.fe ORDER BY k, id;
FETCH 1 FROM c \g /dev/null
CLOSE c;
COMMIT;

-- what all processes compute, and the leader stores
SET temp_file_limit = '1MB';
SELECT alike(gs.forced_plan('DECLARE c CURSOR FOR SELECT id, row_number() OVER (ORDER BY k, id) FROM gs.fe'), '%WindowAgg%GpuSort%Gather%GpuSortIngest%', 'not with a temp_file_limit');
RESET temp_file_limit;
SELECT set_config('gs.window', 'SELECT id, few, t, row_number() OVER w, sum(k) OVER w FROM gs.fe WINDOW w AS (PARTITION BY few ORDER BY k, id)', false) AS windowed \gset
SELECT set_config('gs.groups', 'SELECT k, few, count(DISTINCT t), array_agg(id ORDER BY id) FROM gs.fe GROUP BY k, few', false) AS grouped \gset
BEGIN;
SELECT gs.declare_both('CURSOR', :'windowed', 'GpuSortExchange') \g /dev/null
SELECT is(gs.both('1', '10', '5000'), 'same', 'a window, first rows');
INSERT INTO gs.fe SELECT -i, i, '', 0 FROM generate_series(1, 1000) i;
CREATE TEMP TABLE fe_temp AS SELECT 1 AS one;
SAVEPOINT a;
DELETE FROM gs.fe;
SELECT gs.both('100') AS in_savepoint \gset
ROLLBACK TO a;
SELECT is(:'in_savepoint'::text, 'same', 'after INSERT, CREATE and DELETE');
SELECT is((SELECT count(*) FROM (SELECT id, row_number() OVER (ORDER BY k) FROM gs.fe) s), 21000::bigint, 'another parallel query');
SELECT is(gs.both('RELATIVE 3', 'ABSOLUTE 9000', 'ALL', '1'), 'same', 'to the end');
SELECT throws_ok('FETCH FIRST FROM g', '55000', NULL, 'not back, as PostgreSQL''s');
ROLLBACK;
BEGIN;
SET LOCAL work_mem = '64kB';
SELECT gs.declare_both('NO SCROLL CURSOR', :'windowed', 'GpuSortExchange') \g /dev/null
SAVEPOINT a;
SELECT gs.both('10') AS first \gset
ROLLBACK TO a;
SELECT is(:'first'::text, 'same', 'a window, more than work_mem');
SELECT is(gs.both('10', '10000', 'ALL'), 'same', 'to the end');
COMMIT;
BEGIN;
SELECT gs.declare_both('CURSOR', :'grouped', 'GpuSortExchange') \g /dev/null
SAVEPOINT a;
SELECT gs.both('10') AS first \gset
ROLLBACK TO a;
SELECT is(:'first'::text, 'same', 'groups, first in a savepoint');
SELECT is(gs.both('10', 'ALL'), 'same', 'and when it was rolled back');
COMMIT;
BEGIN;
SELECT gs.declare_both('CURSOR WITH HOLD', :'grouped', 'GpuSortExchange') \g /dev/null
SELECT is(gs.both('100'), 'same', 'groups WITH HOLD before the commit');
COMMIT;
SELECT is(gs.both('100', 'ALL'), 'same', 'and after it');
CLOSE n;
CLOSE g;
BEGIN;
SELECT gs.declare_both('CURSOR', 'SELECT count(DISTINCT t), (SELECT max(i) FROM generate_series(1, 100) i) FROM gs.fe', 'GpuSortExchange') \g /dev/null
SELECT is(gs.both('1', '1'), 'same', 'an aggregate of all rows');
COMMIT;
BEGIN;
SELECT gs.declare_both('CURSOR', 'SELECT * FROM (' || :'windowed' || ') s WHERE few > 10', 'GpuSortExchange') \g /dev/null
SELECT is(gs.both('1', 'ALL'), 'same', 'no row');
COMMIT;
-- going back where PostgreSQL's plan does: its sort is on top
BEGIN;
SELECT gs.declare_both('CURSOR', 'SELECT few, count(DISTINCT k) AS n FROM gs.fe GROUP BY few ORDER BY n DESC, few', 'GpuSortExchange') \g /dev/null
SELECT is(gs.both('3', 'BACKWARD 2', 'LAST', 'FIRST', 'ALL', 'BACKWARD ALL'), 'same', 'back in a sort of groups');
COMMIT;
-- likewise where gpusort's plan does not, as it sorts below
BEGIN;
SET LOCAL gpusort.enable = off;
DECLARE n CURSOR FOR SELECT DISTINCT k + 1 FROM gs.fe ORDER BY 1;
SET LOCAL gpusort.enable = on;
SET LOCAL gpusort.min_rows = 0;
SET LOCAL gpusort.setup_cost = 0;
SET LOCAL gpusort.row_cost = 0;
SET LOCAL max_parallel_workers_per_gather = 0;
DECLARE g CURSOR FOR SELECT DISTINCT k + 1 FROM gs.fe ORDER BY 1;
SELECT matches(gs.plan('DECLARE d CURSOR FOR SELECT DISTINCT k + 1 FROM gs.fe ORDER BY 1'), 'Materialize.*Unique.*GpuSort', 'a Unique above is kept to go back in');
SELECT is(gs.both('3', 'BACKWARD 2', 'ALL', 'BACKWARD ALL'), 'same', 'back in it');
SET LOCAL gpusort.enable = off;
DECLARE n_all CURSOR FOR (SELECT DISTINCT k + 1 FROM gs.fe ORDER BY 1) UNION ALL SELECT k FROM gs.fe_other;
SET LOCAL gpusort.enable = on;
DECLARE g_all CURSOR FOR (SELECT DISTINCT k + 1 FROM gs.fe ORDER BY 1) UNION ALL SELECT k FROM gs.fe_other;
SELECT is(gs.difference(gs.fetch('n_all', movement), gs.fetch('g_all', movement)), 'same', 'nor in a UNION ALL, ' || movement) FROM unnest('{3,BACKWARD 2,ALL,BACKWARD ALL}'::text[]) movement;
SELECT doesnt_match(gs.plan('DECLARE d NO SCROLL CURSOR FOR SELECT DISTINCT k + 1 FROM gs.fe ORDER BY 1'), 'Materialize', 'but not in a cursor that does not scroll');
SELECT doesnt_match(gs.plan('DECLARE d CURSOR FOR SELECT DISTINCT ON (few) * FROM gs.fe ORDER BY few, k'), 'Materialize', 'nor where PostgreSQL cannot go back');
COMMIT;
-- who fetches may be another user than who has opened the cursor, and functions may be gone
CREATE ROLE gs_fetcher;
GRANT USAGE ON SCHEMA gs TO gs_fetcher;
GRANT SELECT ON gs.fe TO gs_fetcher;
CREATE FUNCTION gs.fe_private(bigint) RETURNS bigint LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'int8inc';
REVOKE EXECUTE ON FUNCTION gs.fe_private FROM PUBLIC;
BEGIN;
SELECT gs.declare_both('CURSOR', 'SELECT id FROM gs.fe ORDER BY gs.fe_private(k), id', 'GpuSortIngest') \g /dev/null
SET LOCAL ROLE gs_fetcher;
SELECT gs.both('3', 'ALL') AS fetched \gset
RESET ROLE;
SELECT is(:'fetched'::text, 'same', 'a function that who fetches may not call, below a sort');
COMMIT;
BEGIN;
SELECT gs.declare_both('CURSOR', 'SELECT few, count(DISTINCT gs.fe_private(k)) FROM gs.fe GROUP BY few', 'GpuSortExchange') \g /dev/null
SET LOCAL ROLE gs_fetcher;
SELECT gs.both('3', 'ALL') AS fetched \gset
RESET ROLE;
SELECT is(:'fetched'::text, 'same', 'and below groups that are stored');
COMMIT;
CREATE ROLE gs_callers;
GRANT EXECUTE ON FUNCTION gs.fe_private TO gs_callers;
GRANT gs_callers TO gs_fetcher;
CREATE FUNCTION gs.fetched_after(change text, query text, node text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	fetched text;
BEGIN
	SET LOCAL ROLE gs_fetcher;
	PERFORM gs.declare_both('CURSOR', query, node);
	RESET ROLE;
	EXECUTE change;
	SET LOCAL ROLE gs_fetcher;
	fetched := gs.both('3', 'ALL');
	RESET ROLE;
	RETURN fetched;
END $$;
BEGIN;
SELECT is(gs.fetched_after('REVOKE gs_callers FROM gs_fetcher', 'SELECT id FROM gs.fe ORDER BY gs.fe_private(k), id', 'GpuSortIngest'), 'same', 'a function that a role may not call any more, below a sort');
ROLLBACK;
BEGIN;
SELECT is(gs.fetched_after('REVOKE gs_callers FROM gs_fetcher', 'SELECT few, count(DISTINCT gs.fe_private(k)) FROM gs.fe GROUP BY few', 'GpuSortExchange'), 'same', 'and below groups that are stored');
ROLLBACK;
REVOKE gs_callers FROM gs_fetcher;
ALTER ROLE gs_fetcher SUPERUSER;
BEGIN;
SELECT is(gs.fetched_after('ALTER ROLE gs_fetcher NOSUPERUSER', 'SELECT id FROM gs.fe ORDER BY gs.fe_private(k), id', 'GpuSortIngest'), 'same', 'nor one that is no superuser any more');
ROLLBACK;
ALTER ROLE gs_fetcher NOSUPERUSER;
DROP OWNED BY gs_fetcher, gs_callers;
DROP ROLE gs_fetcher, gs_callers;
BEGIN;
SELECT gs.declare_both('CURSOR', 'SELECT id FROM gs.fe ORDER BY gs.fe_private(k), id', 'GpuSortIngest') \g /dev/null
DROP FUNCTION gs.fe_private;
SELECT is(gs.both('3', 'ALL'), 'same', 'a function that is dropped');
ROLLBACK;
BEGIN;
SELECT gs.declare_both('CURSOR', 'SELECT few, count(DISTINCT gs.fe_private(k)) FROM gs.fe GROUP BY few', 'GpuSortExchange') \g /dev/null
DROP FUNCTION gs.fe_private;
SELECT is(gs.both('3', 'ALL'), 'same', 'and below groups that are stored');
ROLLBACK;
-- several in a statement, one after the other
BEGIN;
SELECT gs.declare_both('CURSOR', '(SELECT few, count(DISTINCT k) AS n FROM gs.fe GROUP BY few) UNION ALL (SELECT id % 7, count(DISTINCT k) FROM gs.fe_other GROUP BY 1) UNION ALL (SELECT id, k FROM gs.fe ORDER BY k, id LIMIT 9000)', 'GpuSortExchange') \g /dev/null
SELECT is(gs.both('3', '5', '7', 'ALL'), 'same', 'three parts');
COMMIT;
-- an error while all is computed
BEGIN;
SET LOCAL gpusort.force = on;
DECLARE c CURSOR FOR SELECT id, gs.fetch_fails_at(id, 15000), row_number() OVER (ORDER BY k, id) FROM gs.fe;
SAVEPOINT a;
SELECT throws_ok('FETCH c', '22012', NULL, 'an error in a process');
ROLLBACK TO a;
DECLARE d CURSOR FOR SELECT id, gs.process(id) AS p, row_number() OVER (ORDER BY k, id) FROM gs.fe;
SELECT isnt(gs.who_fetches('d', 'ALL'), 'leader', 'and another has its workers');
INSERT INTO gs.fe_other VALUES (-1, -1);
ROLLBACK;

-- joins, and several sorts
BEGIN;
SET LOCAL enable_hashjoin = off;
SET LOCAL enable_nestloop = off;
SELECT gs.declare_both('CURSOR', 'SELECT a.id, b.id AS other FROM gs.fe a JOIN gs.fe_other b USING (k) ORDER BY k, a.id, b.id') \g /dev/null
SELECT is(gs.both('10', 'ALL'), 'same', 'above a join');
COMMIT;
BEGIN;
SELECT gs.declare_both('CURSOR', '(SELECT id, k FROM gs.fe ORDER BY k, id LIMIT 15000) UNION ALL (SELECT id, k FROM gs.fe_other ORDER BY k, id LIMIT 4000)') \g /dev/null
SELECT is(gs.both('14999', '2', 'ALL'), 'same', 'two sorts');
COMMIT;

-- levels of isolation
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT gs.declare_both('CURSOR', 'SELECT * FROM gs.fe ORDER BY k, id') \g /dev/null
SELECT is(gs.both('10'), 'same', 'SERIALIZABLE');
INSERT INTO gs.fe_other VALUES (-2, -2);
SELECT is(gs.both('ALL'), 'same', 'to its end');
ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
SELECT gs.declare_both('CURSOR', 'SELECT * FROM gs.fe ORDER BY k, id') \g /dev/null
SELECT is(gs.both('10', 'ALL'), 'same', 'REPEATABLE READ, READ ONLY');
COMMIT;
-- rows of the same transaction, changed before and after the cursor was declared
BEGIN;
INSERT INTO gs.fe SELECT -i, i, 'own', 0 FROM generate_series(1, 1000) i;
SAVEPOINT a;
UPDATE gs.fe SET few = 100 WHERE id < -500;
SELECT gs.declare_both('CURSOR', 'SELECT * FROM gs.fe ORDER BY k, id') \g /dev/null
UPDATE gs.fe SET few = 200 WHERE id < -700;
DELETE FROM gs.fe WHERE id > 19000;
SELECT is(gs.both('10', 'ALL'), 'same', 'rows that this transaction has changed');
ROLLBACK;

-- PL/pgSQL's loops
CREATE FUNCTION gs.loop_query() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	r record;
	processes int[];
BEGIN
	FOR r IN SELECT id, gs.process(id) AS p FROM gs.fe ORDER BY k, id LOOP
		INSERT INTO gs.fe_seen VALUES (r.id);
		processes := processes || r.p;
		EXIT WHEN cardinality(processes) = 100;
	END LOOP;
	RETURN gs.who(processes);
END $$;
CREATE FUNCTION gs.loop_cursor() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	c CURSOR (lowest int) FOR SELECT id, gs.process(id) AS p FROM gs.fe WHERE id >= lowest ORDER BY k, id;
	processes int[];
BEGIN
	FOR r IN c (2) LOOP
		BEGIN
			INSERT INTO gs.fe_seen VALUES (r.id);
			processes := processes || r.p;
			IF r.id % 2 = 0 THEN
				RAISE division_by_zero;
			END IF;
		EXCEPTION WHEN division_by_zero THEN
			NULL;
		END;
		EXIT WHEN cardinality(processes) = 100;
	END LOOP;
	RETURN gs.who(processes);
END $$;
CREATE FUNCTION gs.loop_execute() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	r record;
	processes int[];
BEGIN
	FOR r IN EXECUTE 'SELECT id, gs.process(id) AS p FROM gs.fe WHERE id >= $1 ORDER BY k, id' USING 3 LOOP
		PERFORM nextval('gs.fe_sequence');
		processes := processes || r.p;
		EXIT WHEN cardinality(processes) = 100;
	END LOOP;
	RETURN gs.who(processes);
END $$;
CREATE SEQUENCE gs.fe_sequence;
CREATE TABLE gs.fe_seen (id int);
SET gpusort.force = on;
SET gpusort.min_rows = 0;
SELECT is(gs.loop_query(), 'workers', 'FOR ... IN query');
SELECT is(gs.loop_cursor(), 'workers', 'FOR ... IN cursor');
SELECT is(gs.loop_execute(), 'workers', 'FOR ... IN EXECUTE');
SELECT is((SELECT array_agg(id ORDER BY ctid) FROM gs.fe_seen),
		  (SELECT array_agg(id) FROM (SELECT id FROM gs.fe ORDER BY k, id LIMIT 100) s)
		  || (SELECT array_agg(id) FROM (SELECT * FROM (SELECT id FROM gs.fe WHERE id >= 2 ORDER BY k, id LIMIT 100) s WHERE id % 2 = 1) s), 'the rows');
SELECT is((SELECT array_agg(w) FROM (SELECT gs.loop_query() AS w FROM generate_series(1, 7)) s), array_fill('workers'::text, ARRAY[7]), 'by plans that are cached');
-- what all processes compute in such loops, which write in between
CREATE TABLE gs.fe_looped (rows text);
CREATE FUNCTION gs.loop_groups() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	r record;
	processes int[];
BEGIN
	FOR r IN SELECT few, count(DISTINCT k) AS n, gs.process(few) AS p FROM gs.fe GROUP BY few LOOP
		INSERT INTO gs.fe_looped VALUES (r.few || ' ' || r.n);
		processes := processes || r.p;
	END LOOP;
	RETURN gs.who(processes);
END $$;
CREATE FUNCTION gs.loop_window() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	r record;
	processes int[];
	seen text[];
BEGIN
	FOR r IN SELECT id, gs.process(id) AS p, rank() OVER (PARTITION BY few ORDER BY k, id) AS n FROM gs.fe LOOP
		PERFORM nextval('gs.fe_sequence');
		processes := processes || r.p;
		seen := seen || (r.id || ' ' || r.n);
		EXIT WHEN cardinality(processes) = 2500;
	END LOOP;
	INSERT INTO gs.fe_looped VALUES (seen);
	RETURN gs.who(processes);
END $$;
SELECT isnt(gs.loop_groups(), 'leader', 'groups in FOR ... IN query');
SELECT isnt(gs.loop_window(), 'leader', 'a window in FOR ... IN query');
CREATE TABLE gs.fe_looped_in_parallel AS TABLE gs.fe_looped;
TRUNCATE gs.fe_looped;
SET gpusort.enable = off;
SELECT gs.loop_groups(), gs.loop_window() \g /dev/null
RESET gpusort.enable;
SELECT is((SELECT md5(string_agg(rows, '/' ORDER BY rows)) FROM gs.fe_looped_in_parallel), (SELECT md5(string_agg(rows, '/' ORDER BY rows)) FROM gs.fe_looped), 'their rows');
-- where workers must not be started: in parallel mode, which a parallel query's leader is in
CREATE FUNCTION gs.loop_reads(int) RETURNS text LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS $$
DECLARE
	r record;
	processes int[];
BEGIN
	FOR r IN SELECT id, gs.process(id) AS p FROM gs.fe ORDER BY k, id LOOP
		processes := processes || r.p;
		EXIT WHEN cardinality(processes) = 100;
	END LOOP;
	RETURN gs.who(processes);
END $$;
SELECT string_agg(DISTINCT w, ' ') AS within FROM (SELECT gs.loop_reads(id) AS w FROM gs.fe WHERE k < 3 ORDER BY k, id OFFSET 0) s \gset
SELECT is(:'within'::text, 'leader', 'within a parallel query');
SELECT is(gs.loop_reads(1), 'workers', 'and without one');
-- a procedure that commits within its loop
CREATE PROCEDURE gs.loop_window_commits() LANGUAGE plpgsql AS $$
DECLARE
	r record;
	n int := 0;
BEGIN
	FOR r IN SELECT id, row_number() OVER (ORDER BY k, id) AS n FROM gs.fe LOOP
		INSERT INTO gs.fe_seen VALUES (r.id);
		n := n + 1;
		IF n <> r.n THEN
			RAISE 'row % has number %', n, r.n;
		END IF;
		IF n % 5000 = 0 THEN
			COMMIT;
		END IF;
	END LOOP;
END $$;
CREATE PROCEDURE gs.loop_commits() LANGUAGE plpgsql AS $$
DECLARE
	r record;
	n int := 0;
BEGIN
	FOR r IN SELECT id FROM gs.fe ORDER BY k, id LOOP
		INSERT INTO gs.fe_seen VALUES (r.id);
		n := n + 1;
		IF n % 5000 = 0 THEN
			COMMIT;
		END IF;
	END LOOP;
END $$;
TRUNCATE gs.fe_seen;
CALL gs.loop_commits();
SELECT is((SELECT md5(string_agg(id::text, ' ' ORDER BY ctid)) FROM gs.fe_seen), (SELECT md5(string_agg(id::text, ' ' ORDER BY k, id)) FROM gs.fe), 'a loop with COMMIT');
TRUNCATE gs.fe_seen;
CALL gs.loop_window_commits();
SELECT is((SELECT md5(string_agg(id::text, ' ' ORDER BY ctid)) FROM gs.fe_seen), (SELECT md5(string_agg(id::text, ' ' ORDER BY k, id)) FROM gs.fe), 'a loop over a window with COMMIT');
-- a function in SQL that gives its rows one by one
CREATE FUNCTION gs.rows_of_sql() RETURNS TABLE (id int, p int) LANGUAGE sql STABLE SET enable_material = on AS 'SELECT id, gs.process(id) FROM gs.fe ORDER BY k, id';
SELECT is((SELECT gs.who(array_agg(p)) FROM (SELECT (gs.rows_of_sql()).p LIMIT 100) s), 'workers', 'a function in SQL');
-- a cursor in a function, of a parameter
CREATE FUNCTION gs.open_cursor(lowest int) RETURNS refcursor LANGUAGE plpgsql AS $$
DECLARE
	c refcursor := 'opened';
BEGIN
	OPEN c FOR SELECT id, gs.process(id) AS p FROM gs.fe WHERE id > lowest ORDER BY k, id;
	RETURN c;
END $$;
BEGIN;
SELECT gs.open_cursor(100) \g /dev/null
SELECT is(gs.who_fetches('opened', '100'), 'workers', 'OPEN ... FOR query');
COMMIT;
RESET gpusort.force;
RESET gpusort.min_rows;

-- INSERT of what is selected.  Natively into one table, by GpuSort into another: 'workers' if these have taken rows in,
-- and both tables are the same.
CREATE FUNCTION gs.insert_both(target text, selects text, rest text DEFAULT '') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	native text[];
	forced text[];
	statement text := format('INSERT INTO gs.%s %s %s', target, selects, rest);
	plan text := gs.forced_plan(statement);
BEGIN
	EXECUTE format('ALTER SEQUENCE gs.fe_sequence RESTART; TRUNCATE gs.%s; TRUNCATE gs.fe_log', target);
	SET LOCAL gpusort.enable = off;
	EXECUTE statement;
	EXECUTE format('SELECT array_agg(x::text ORDER BY tableoid::regclass::text, ctid) FROM gs.%s x', target) INTO native;
	native := native || ARRAY(SELECT l::text FROM gs.fe_log l ORDER BY ctid);
	EXECUTE format('ALTER SEQUENCE gs.fe_sequence RESTART; TRUNCATE gs.%s; TRUNCATE gs.fe_log', target);
	SET LOCAL gpusort.enable = on;
	SET LOCAL gpusort.force = on;
	SET LOCAL gpusort.min_rows = 0;
	EXECUTE statement;
	SET LOCAL gpusort.force = off;
	EXECUTE format('SELECT array_agg(x::text ORDER BY tableoid::regclass::text, ctid) FROM gs.%s x', target) INTO forced;
	forced := forced || ARRAY(SELECT l::text FROM gs.fe_log l ORDER BY ctid);
	IF native IS DISTINCT FROM forced THEN
		RETURN gs.difference(native, forced);
	END IF;
	RETURN CASE WHEN plan LIKE '%GpuSortIngest%' THEN 'workers' WHEN plan LIKE '%Gather%' THEN plan WHEN plan LIKE '%GpuSort%' THEN 'leader' ELSE 'native' END;
END $$;
CREATE TABLE gs.fe_log (what text, n bigint);
CREATE TABLE gs.fe_into (id int, k bigint, n int DEFAULT nextval('gs.fe_sequence'), CHECK (id <> 0));
SELECT is(gs.insert_both('fe_into', 'SELECT id, k FROM gs.fe ORDER BY k, id'), 'workers', 'INSERT with a default');
SELECT is(gs.insert_both('fe_into', 'SELECT id, k, few FROM gs.fe WHERE id < 15000 ORDER BY t, id LIMIT 8000'), 'workers', 'with a LIMIT');
SELECT is(gs.insert_both('fe_into', 'SELECT id, row_number() OVER (ORDER BY k, id) FROM gs.fe'), 'workers', 'of a window');
SELECT is(gs.insert_both('fe_into', 'SELECT DISTINCT few + 1, k FROM gs.fe ORDER BY k, 1'), 'workers', 'of DISTINCT');
SELECT is(gs.insert_both('fe_into', 'SELECT a.id, k FROM gs.fe a JOIN gs.fe_other b USING (k) ORDER BY k, a.id, b.id'), 'workers', 'of a join');
SELECT is(gs.insert_both('fe_into', 'SELECT id, k FROM gs.fe UNION ALL SELECT id, k FROM gs.fe_other ORDER BY 2, 1'), 'workers', 'of UNION ALL');
SELECT is(gs.insert_both('fe_into', 'SELECT id, k FROM gs.fe WHERE id > (SELECT max(i) FROM generate_series(1, 100) i) ORDER BY k, id'), 'workers', 'with an initPlan');
SELECT is(gs.insert_both('fe_into', 'SELECT id, k FROM gs.fe WHERE id > (SELECT min(id) + 100 FROM gs.fe_other) ORDER BY k, id'), 'leader', 'not with one that has other workers');
SELECT is(gs.insert_both('fe_into', 'SELECT id, nextval(''gs.fe_sequence'') FROM gs.fe ORDER BY k, id'), 'leader', 'not with nextval()');
SELECT is(gs.insert_both('fe_into', 'WITH c AS MATERIALIZED (SELECT id, k FROM gs.fe WHERE few < 5) SELECT id, k FROM c ORDER BY k, id'), 'leader', 'not of a CTE');
SELECT unalike(gs.forced_plan('WITH d AS (INSERT INTO gs.fe_log VALUES (''written'', 1) RETURNING n) INSERT INTO gs.fe_into SELECT id, k FROM gs.fe, d ORDER BY k, id'), '%Gather%',
			   'not with a CTE that writes');
SET gpusort.parallel_cursors = off;
SELECT is(gs.insert_both('fe_into', 'SELECT id, k FROM gs.fe ORDER BY k, id'), 'leader', 'not with gpusort.parallel_cursors off');
RESET gpusort.parallel_cursors;
-- workers have taken them in, and what the statement itself computes is the leader's
CREATE TABLE gs.fe_processes (id int, p int, own int DEFAULT gs.process(1));
SET gpusort.force = on;
SET gpusort.min_rows = 0;
INSERT INTO gs.fe_processes (id, p) SELECT id, gs.process(id) FROM gs.fe ORDER BY k, id;
SELECT is((SELECT gs.who(array_agg(p)) || ' ' || gs.who(array_agg(own)) FROM gs.fe_processes), 'workers leader', 'rows are the workers'', defaults the leader''s');
SELECT is((SELECT array_agg(id ORDER BY ctid) FROM gs.fe_processes), (SELECT array_agg(id ORDER BY k, id) FROM gs.fe), 'in their order');
-- prepared, in a function, with rows to be given back, from the same table
PREPARE inserting (int) AS INSERT INTO gs.fe_processes (id, p) SELECT id, gs.process(id) FROM gs.fe_processes WHERE id < $1 ORDER BY id DESC;
TRUNCATE gs.fe_processes;
INSERT INTO gs.fe_processes SELECT i, 0, 0 FROM generate_series(1, 3000) i;
ANALYZE gs.fe_processes;
EXECUTE inserting (2001);
SELECT is((SELECT gs.who(array_agg(p)) || count(*) || min(id) || max(id) FROM gs.fe_processes WHERE p > 0), 'workers200012000', 'prepared, from the same table');
CREATE FUNCTION gs.insert_in_function() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	rows bigint;
BEGIN
	TRUNCATE gs.fe_processes;
	INSERT INTO gs.fe_processes (id, p) SELECT id, gs.process(id) FROM gs.fe ORDER BY k, id;
	GET DIAGNOSTICS rows = ROW_COUNT;
	RETURN rows || ' ' || (SELECT gs.who(array_agg(p)) FROM gs.fe_processes);
END $$;
SELECT is(gs.insert_in_function(), '20000 workers', 'in a function');
SELECT is(gs.insert_in_function(), '20000 workers', 'again');
WITH i AS (INSERT INTO gs.fe_processes (id, p) SELECT id, gs.process(id) FROM gs.fe ORDER BY k, id RETURNING id) SELECT is(count(*), 20000::bigint, 'in a CTE, as ever') FROM i;
TRUNCATE gs.fe_processes;
INSERT INTO gs.fe_processes (id, p) SELECT id, gs.process(id) FROM gs.fe ORDER BY k, id RETURNING id \g /dev/null
SELECT is((SELECT gs.who(array_agg(p)) FROM gs.fe_processes), 'workers', 'RETURNING');
SELECT throws_ok('INSERT INTO gs.fe_processes (id, p) SELECT id, gs.fetch_fails_at(id, 15000) FROM gs.fe ORDER BY k, id', '22012', NULL, 'an error in a worker');
SELECT is((SELECT count(*) FROM gs.fe_processes), 20000::bigint, 'leaves nothing');
-- first thing in a transaction, and after others
BEGIN;
SAVEPOINT a;
INSERT INTO gs.fe_processes (id, p) SELECT id, gs.process(id) FROM gs.fe ORDER BY k, id;
ROLLBACK TO a;
INSERT INTO gs.fe VALUES (0, 0, 'own', 0);
INSERT INTO gs.fe_processes (id, p) SELECT id, gs.process(id) FROM gs.fe ORDER BY k, id;
SELECT is((SELECT gs.who(array_agg(p)) || count(*) FROM gs.fe_processes), 'workers40001', 'within a transaction');
ROLLBACK;
RESET gpusort.force;
RESET gpusort.min_rows;
-- many rows at once, where nothing hangs on the table: fewer records of WAL than rows
CREATE TABLE gs.fe_bare (id int NOT NULL, k bigint, t text);
CREATE DOMAIN gs.fe_domain AS text CHECK (length(VALUE) > 0);
CREATE FUNCTION gs.insert_records(statement text) RETURNS text LANGUAGE plpgsql SET gpusort.force = on SET gpusort.min_rows = 0 AS $$
DECLARE
	plan json;
BEGIN
	DELETE FROM gs.fe_bare; -- what has been truncated is filled by pages
	EXECUTE 'EXPLAIN (ANALYZE, WAL, FORMAT JSON) ' || statement INTO plan;
	RETURN CASE WHEN (plan->0->'Plan'->>'WAL Records')::int < (SELECT count(*) FROM gs.fe_bare) / 10 THEN 'batches' ELSE 'rows' END;
END $$;
SELECT is(gs.insert_records('INSERT INTO gs.fe_bare ' || selects), how, selects) FROM (VALUES
	('batches', 'SELECT id, k, t FROM gs.fe ORDER BY k, id'),
	('batches', 'SELECT id, k, t || id FROM gs.fe ORDER BY k, id'),
	('batches', '(t, id) SELECT t::varchar(40), id::int8 FROM gs.fe ORDER BY k, id'),
	('batches', '(id, k) SELECT k % 700, id FROM gs.fe ORDER BY k, id'),
	('rows', 'SELECT s.id, s.k, s.t::gs.fe_domain FROM (SELECT * FROM gs.fe ORDER BY k, id) s'),
	('rows', 'SELECT s.id, s.k, pg_current_xact_id_if_assigned()::text FROM (SELECT * FROM gs.fe ORDER BY k, id) s'),
	('rows', 'SELECT s.id, nextval(''gs.fe_sequence''), s.t FROM (SELECT * FROM gs.fe ORDER BY k, id) s'),
	('rows', 'SELECT s.id, (SELECT max(id) FROM gs.fe_other), s.t FROM (SELECT * FROM gs.fe ORDER BY k, id) s'),
	('rows', 'SELECT id, few, t FROM gs.fe ORDER BY t, id LIMIT 5000'),
	('rows', 'SELECT id, row_number() OVER (ORDER BY k, id), t FROM gs.fe'),
	('rows', 'SELECT id, k, t FROM gs.fe ORDER BY k, id RETURNING id')) v (how, selects);
SET gpusort.parallel_output = off;
SELECT is(gs.insert_records('INSERT INTO gs.fe_bare SELECT id, k, t FROM gs.fe ORDER BY k, id'), 'rows', 'row by row with gpusort.parallel_output off');
RESET gpusort.parallel_output;
CREATE FUNCTION gs.insert_same(selects text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	native text[];
	forced text[];
BEGIN
	DELETE FROM gs.fe_bare;
	SET LOCAL gpusort.enable = off;
	EXECUTE 'INSERT INTO gs.fe_bare ' || selects;
	native := ARRAY(SELECT b::text FROM gs.fe_bare b ORDER BY 1);
	DELETE FROM gs.fe_bare;
	SET LOCAL gpusort.enable = on;
	SET LOCAL gpusort.force = on;
	SET LOCAL gpusort.min_rows = 0;
	EXECUTE 'INSERT INTO gs.fe_bare ' || selects;
	SET LOCAL gpusort.enable = off;
	forced := ARRAY(SELECT b::text FROM gs.fe_bare b ORDER BY 1);
	SET LOCAL gpusort.enable = on;
	RETURN gs.difference(native, forced);
END $$;
SELECT is(gs.insert_same(selects), 'same', selects) FROM (VALUES
	('SELECT id, k, t FROM gs.fe ORDER BY k, id'),
	('(id, t) SELECT id, t FROM gs.fe ORDER BY k, id'),
	('SELECT id, CASE WHEN id % 3 > 0 THEN k END, CASE WHEN id % 5 > 0 THEN t END FROM gs.fe ORDER BY k DESC, id'),
	('SELECT id, k, CASE WHEN id % 50 = 0 THEN (SELECT string_agg(md5((i * id)::text), '''') FROM generate_series(1, 300) i) ELSE repeat(t, 100) END FROM gs.fe WHERE id < 5000 ORDER BY k, id'),
	('SELECT id, k, t FROM gs.fe WHERE id < 0 ORDER BY k, id'),
	('SELECT id, k, t FROM gs.fe WHERE id = 77 ORDER BY k, id')) v (selects);
-- behind what was there, of the table itself, and counted
CREATE FUNCTION gs.insert_counted() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	first bigint;
	second bigint;
BEGIN
	TRUNCATE gs.fe_bare;
	INSERT INTO gs.fe_bare SELECT id, k, t FROM gs.fe ORDER BY k, id;
	GET DIAGNOSTICS first = ROW_COUNT;
	INSERT INTO gs.fe_bare SELECT -id, k, 'again' FROM gs.fe_bare ORDER BY k DESC, id;
	GET DIAGNOSTICS second = ROW_COUNT;
	RETURN concat_ws(' ', first, second, (SELECT md5(string_agg(b::text, ' ' ORDER BY ctid)) FROM gs.fe_bare b));
END $$;
SET gpusort.enable = off;
SELECT gs.insert_counted() AS native \gset
RESET gpusort.enable;
SET gpusort.force = on;
SET gpusort.min_rows = 0;
SELECT is(gs.insert_counted(), :'native', 'counted, and of the table itself');
PREPARE fe_again (int) AS INSERT INTO gs.fe_bare SELECT id, k, t FROM gs.fe WHERE id <= $1 ORDER BY k, id;
TRUNCATE gs.fe_bare;
EXECUTE fe_again (100);
EXECUTE fe_again (0);
EXECUTE fe_again (5000);
SELECT is((SELECT count(*) FROM gs.fe_bare), 5100::bigint, 'prepared');
SELECT throws_ok('INSERT INTO gs.fe_bare SELECT NULLIF(id, 17000), k, t FROM gs.fe ORDER BY id', '23502', NULL, 'a NULL where there may be none');
ALTER TABLE gs.fe_bare ALTER t SET STORAGE PLAIN;
SELECT throws_ok('INSERT INTO gs.fe_bare SELECT NULLIF(id, 2), k, repeat(t, CASE id WHEN 1 THEN 500 ELSE 1 END) FROM gs.fe ORDER BY id', '54000', NULL, 'a row that is too long, and then a NULL');
SELECT throws_ok('INSERT INTO gs.fe_bare SELECT 300 / (id - 17000), k, t FROM gs.fe ORDER BY id', '22012', NULL, 'an error in a worker');
SELECT is((SELECT count(*) FROM gs.fe_bare), 5100::bigint, 'leave nothing');
BEGIN;
SAVEPOINT a;
INSERT INTO gs.fe_bare SELECT id, k, t FROM gs.fe ORDER BY k, id;
ROLLBACK TO a;
INSERT INTO gs.fe_bare SELECT id, k, t FROM gs.fe WHERE id <= 3000 ORDER BY k, id;
CREATE TEMP TABLE fe_temporary (LIKE gs.fe_bare);
INSERT INTO fe_temporary SELECT * FROM gs.fe_bare ORDER BY k, id;
SELECT is((SELECT concat_ws(' ', (SELECT count(*) FROM gs.fe_bare), count(*), count(DISTINCT id)) FROM fe_temporary), '8100 8100 5000', 'after a savepoint, and into a temporary table');
ROLLBACK;
RESET gpusort.force;
RESET gpusort.min_rows;
-- with all that hangs on a table
CREATE FUNCTION gs.fe_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.id % 1000 = 0 THEN
		INSERT INTO gs.fe_log VALUES (TG_WHEN || ' ' || TG_LEVEL, NEW.id);
	END IF;
	NEW.k := NEW.k + 1;
	RETURN CASE WHEN NEW.id % 7 = 0 THEN NULL ELSE NEW END;
END $$;
CREATE FUNCTION gs.fe_statement() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO gs.fe_log SELECT TG_WHEN || ' ' || TG_LEVEL, count(*) FROM gs.fe;
	RETURN NULL;
END $$;
CREATE FUNCTION gs.fe_rows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO gs.fe_log SELECT 'inserted', count(*) FROM inserted;
	RETURN NULL;
END $$;
CREATE TABLE gs.fe_triggers (id int PRIMARY KEY, k bigint, twice bigint GENERATED ALWAYS AS (k * 2) STORED, serial int GENERATED BY DEFAULT AS IDENTITY);
CREATE TRIGGER a BEFORE INSERT ON gs.fe_triggers FOR EACH ROW EXECUTE FUNCTION gs.fe_row();
CREATE TRIGGER b BEFORE INSERT ON gs.fe_triggers EXECUTE FUNCTION gs.fe_statement();
CREATE TRIGGER c AFTER INSERT ON gs.fe_triggers EXECUTE FUNCTION gs.fe_statement();
CREATE TRIGGER d AFTER INSERT ON gs.fe_triggers REFERENCING NEW TABLE AS inserted EXECUTE FUNCTION gs.fe_rows();
SELECT is(gs.insert_both('fe_triggers', '(id, k, serial) SELECT id, k, few FROM gs.fe ORDER BY k, id'), 'workers', 'triggers, generated columns, an index');
CREATE TABLE gs.fe_unique (id int PRIMARY KEY, k bigint);
SELECT is(gs.insert_both('fe_unique', 'SELECT id % 9000, k FROM gs.fe ORDER BY k, id', 'ON CONFLICT DO NOTHING'), 'workers', 'ON CONFLICT DO NOTHING');
SELECT is(gs.insert_both('fe_unique', 'SELECT id, k FROM gs.fe ORDER BY k, id', 'ON CONFLICT (id) DO UPDATE SET k = fe_unique.k + excluded.k RETURNING k'), 'workers', 'ON CONFLICT DO UPDATE');
SELECT throws_ok('INSERT INTO gs.fe_unique SELECT id, k FROM gs.fe ORDER BY k, id', '23505', NULL, 'a row that is there');
CREATE TABLE gs.fe_parted (id int, k bigint) PARTITION BY HASH (id);
CREATE TABLE gs.fe_parted_1 PARTITION OF gs.fe_parted FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE gs.fe_parted_2 PARTITION OF gs.fe_parted FOR VALUES WITH (MODULUS 2, REMAINDER 1);
SELECT is(gs.insert_both('fe_parted', 'SELECT id, k FROM gs.fe ORDER BY k, id'), 'workers', 'partitions');
CREATE FUNCTION gs.insert_forced(statement text, target text) RETURNS text LANGUAGE plpgsql SET gpusort.force = on SET gpusort.min_rows = 0 AS $$
DECLARE
	plan text := gs.forced_plan(statement);
	rows text;
BEGIN
	EXECUTE 'TRUNCATE ' || target;
	EXECUTE statement;
	EXECUTE format('SELECT md5(string_agg(x::text, '' '' ORDER BY ctid)) FROM %s x', target) INTO rows;
	RETURN CASE WHEN plan LIKE '%GpuSortIngest%' THEN 'workers' ELSE 'leader' END || rows;
END $$;
CREATE TABLE gs.fe_plain (id int, k bigint);
CREATE VIEW gs.fe_checked AS SELECT id, k FROM gs.fe_plain WHERE id > -1 WITH CHECK OPTION;
CREATE VIEW gs.fe_instead AS SELECT id, k FROM gs.fe_plain;
CREATE FUNCTION gs.fe_instead() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO gs.fe_plain VALUES (NEW.id, NEW.k); RETURN NEW; END';
CREATE TRIGGER a INSTEAD OF INSERT ON gs.fe_instead FOR EACH ROW EXECUTE FUNCTION gs.fe_instead();
CREATE VIEW gs.fe_ruled AS SELECT id, k FROM gs.fe_plain;
CREATE RULE a AS ON INSERT TO gs.fe_ruled DO INSTEAD INSERT INTO gs.fe_plain VALUES (NEW.id, NEW.k);
CREATE FUNCTION gs.fe_right() RETURNS text LANGUAGE sql SET gpusort.enable = off AS $$ SELECT md5(string_agg(format('(%s,%s)', id, k), ' ' ORDER BY k, id)) FROM gs.fe $$;
SELECT is(gs.insert_forced('INSERT INTO gs.fe_checked SELECT id, k FROM gs.fe ORDER BY k, id', 'gs.fe_plain'), 'workers' || gs.fe_right(), 'a view');
SELECT is(gs.insert_forced('INSERT INTO gs.fe_instead SELECT id, k FROM gs.fe ORDER BY k, id', 'gs.fe_plain'), 'workers' || gs.fe_right(), 'a view with a trigger');
SELECT is(gs.insert_forced('INSERT INTO gs.fe_ruled SELECT id, k FROM gs.fe ORDER BY k, id', 'gs.fe_plain'), 'workers' || gs.fe_right(), 'a view with a rule');
ALTER TABLE gs.fe_plain ENABLE ROW LEVEL SECURITY;
SELECT is(gs.insert_forced('INSERT INTO gs.fe_plain SELECT id, k FROM gs.fe ORDER BY k, id', 'gs.fe_plain'), 'workers' || gs.fe_right(), 'with row security');
-- EXPLAIN tells what has been done
SELECT is((SELECT (n->>'Rows Ingested')::int FROM gs.nodes('INSERT INTO gs.fe_plain SELECT id, k FROM gs.fe ORDER BY k, id', 'GpuSortIngest') n), 20000, 'EXPLAIN (ANALYZE)');

-- no worker to be had
SET max_parallel_workers = 0;
BEGIN;
SET LOCAL gpusort.force = on;
DECLARE c CURSOR FOR SELECT id, gs.process(id) AS p FROM gs.fe ORDER BY k, id;
SELECT is(gs.who_fetches('c', 'ALL'), 'leader', 'no worker to be had');
COMMIT;
SELECT is(gs.insert_both('fe_into', 'SELECT id, k FROM gs.fe ORDER BY k, id'), 'workers', 'nor for an INSERT');
RESET max_parallel_workers;

SELECT * FROM finish();
