\set ECHO none
-- Cursors: the same walk over a native and over a GpuSort cursor must see the
-- same rows at every step.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on

CREATE TABLE gs.cur AS SELECT i AS id, (i * 7919) % 503 AS k, ('a prefix that is the same in all of these rows, for as far as a key goes and then some more '
	|| (i * 7919) % 101) COLLATE "C" AS t, repeat('pad', 50) AS pad FROM generate_series(1, 40000) i;
ANALYZE gs.cur;

-- Declares cursor n natively and cursor g through GpuSort.
CREATE FUNCTION gs.declare(options text, query text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	SET LOCAL gpusort.enable = off;
	EXECUTE format('DECLARE n %s FOR %s', options, query);
	SET LOCAL gpusort.enable = on;
	SET LOCAL gpusort.force = on;
	SET LOCAL gpusort.min_rows = 0;
	EXECUTE format('DECLARE g %s FOR %s', options, query);
	SET LOCAL gpusort.force = off;
END $$;

-- 'same' when both cursors go through all movements alike.
CREATE FUNCTION gs.walk(VARIADIC movements text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	movement text;
	difference text;
BEGIN
	FOREACH movement IN ARRAY movements LOOP
		IF movement LIKE 'MOVE %' THEN
			EXECUTE movement || ' FROM n';
			EXECUTE movement || ' FROM g';
		ELSE
			difference := gs.difference(gs.fetch('n', movement), gs.fetch('g', movement));
			IF difference <> 'same' THEN
				RETURN format('after %s: %s', movement, difference);
			END IF;
		END IF;
	END LOOP;
	RETURN 'same';
END $$;

SELECT * FROM no_plan();

SELECT ok(gs.forced_uses('DECLARE c SCROLL CURSOR FOR SELECT id FROM gs.cur ORDER BY k, id'), 'a SCROLL cursor goes through GpuSort');
SELECT ok(gs.forced_uses('DECLARE c NO SCROLL CURSOR FOR SELECT id FROM gs.cur ORDER BY k, id'), 'a NO SCROLL cursor goes through GpuSort');

-- SCROLL, by an exact and by an inexact key, short and long
BEGIN;
SELECT gs.declare('SCROLL CURSOR', 'SELECT * FROM gs.cur ORDER BY k, id') \g /dev/null
SELECT is(gs.walk('NEXT', 'NEXT', 'PRIOR', 'PRIOR', 'PRIOR', 'FORWARD 5', 'BACKWARD 3', 'ABSOLUTE 17', 'RELATIVE 4', 'RELATIVE -10', 'RELATIVE 0',
				  'FIRST', 'LAST', 'NEXT', 'NEXT', 'PRIOR', 'ABSOLUTE -1', 'ABSOLUTE -100', 'BACKWARD 7', 'ABSOLUTE 0', 'NEXT'),
		  'same', 'SCROLL, exact key: small steps');
SELECT is(gs.walk('MOVE FORWARD 30000', 'FORWARD 5', 'MOVE BACKWARD 20000', 'BACKWARD 5', 'ABSOLUTE 39999', 'FORWARD 10', 'BACKWARD 12', 'MOVE ABSOLUTE 20000',
				  'RELATIVE 10000', 'RELATIVE -25000', 'MOVE LAST', 'PRIOR', 'MOVE FIRST', 'FORWARD 3', 'MOVE FORWARD ALL', 'NEXT', 'BACKWARD 2',
				  'MOVE BACKWARD ALL', 'PRIOR', 'NEXT'),
		  'same', 'SCROLL, exact key: long steps');
SELECT is(gs.walk('ABSOLUTE 0', 'FORWARD ALL', 'BACKWARD ALL', 'FORWARD ALL'), 'same', 'SCROLL, exact key: all the rows, three times');
COMMIT;
BEGIN;
SELECT gs.declare('SCROLL CURSOR', 'SELECT * FROM gs.cur ORDER BY t DESC, id') \g /dev/null
SELECT is(gs.walk('NEXT', 'NEXT', 'PRIOR', 'PRIOR', 'PRIOR', 'FORWARD 5', 'BACKWARD 3', 'ABSOLUTE 17', 'RELATIVE 4', 'RELATIVE -10', 'RELATIVE 0',
				  'FIRST', 'LAST', 'NEXT', 'NEXT', 'PRIOR', 'ABSOLUTE -1', 'ABSOLUTE -100', 'BACKWARD 7', 'ABSOLUTE 0', 'NEXT'),
		  'same', 'SCROLL, inexact key: small steps');
SELECT is(gs.walk('MOVE FORWARD 30000', 'FORWARD 500', 'MOVE BACKWARD 20000', 'BACKWARD 500', 'ABSOLUTE 39999', 'FORWARD 10', 'BACKWARD 1200', 'MOVE ABSOLUTE 20000',
				  'RELATIVE 10000', 'RELATIVE -25000', 'MOVE LAST', 'PRIOR', 'MOVE FIRST', 'FORWARD 3', 'MOVE FORWARD ALL', 'NEXT', 'BACKWARD 2',
				  'MOVE BACKWARD ALL', 'PRIOR', 'NEXT'),
		  'same', 'SCROLL, inexact key: long steps');
SELECT is(gs.walk('ABSOLUTE 0', 'FORWARD ALL', 'BACKWARD ALL', 'FORWARD ALL'), 'same', 'SCROLL, inexact key: all the rows, three times');
COMMIT;

-- without SCROLL forward alone is safe to ask for; with neither word PostgreSQL decides alike for both
BEGIN;
SELECT gs.declare('NO SCROLL CURSOR', 'SELECT * FROM gs.cur ORDER BY k, id') \g /dev/null
SELECT is(gs.walk('NEXT', 'FORWARD 100', 'MOVE FORWARD 20000', 'FORWARD 3', 'FORWARD ALL', 'NEXT'), 'same', 'NO SCROLL');
SELECT throws_ok('FETCH PRIOR FROM g', '55000', NULL, 'NO SCROLL does not go back');
COMMIT;
BEGIN;
SELECT gs.declare('CURSOR', 'SELECT id FROM gs.cur ORDER BY t, id') \g /dev/null
SELECT is(gs.walk('FORWARD 100', 'BACKWARD 50', 'FORWARD ALL', 'BACKWARD ALL', 'NEXT'), 'same', 'neither SCROLL nor NO SCROLL');
COMMIT;

-- no row, one row, one value
BEGIN;
SELECT gs.declare('SCROLL CURSOR', 'SELECT * FROM gs.cur WHERE id < 0 ORDER BY k') \g /dev/null
SELECT is(gs.walk('NEXT', 'PRIOR', 'FIRST', 'LAST', 'ABSOLUTE 1', 'FORWARD ALL', 'BACKWARD ALL'), 'same', 'SCROLL over no row');
COMMIT;
BEGIN;
SELECT gs.declare('SCROLL CURSOR', 'SELECT * FROM gs.cur WHERE id = 1 ORDER BY t') \g /dev/null
SELECT is(gs.walk('NEXT', 'NEXT', 'PRIOR', 'PRIOR', 'FIRST', 'LAST', 'ABSOLUTE -1', 'RELATIVE 0', 'FORWARD ALL', 'BACKWARD ALL'), 'same', 'SCROLL over one row');
COMMIT;

-- a part of the rows, then CLOSE; and never a FETCH
BEGIN;
SELECT gs.declare('CURSOR', 'SELECT id FROM gs.cur ORDER BY k, id') \g /dev/null
SELECT is(gs.walk('FORWARD 10'), 'same', 'the first rows');
CLOSE g;
CLOSE n;
SELECT gs.declare('SCROLL CURSOR', 'SELECT id FROM gs.cur ORDER BY k, id') \g /dev/null
CLOSE g;
CLOSE n;
SELECT gs.declare('SCROLL CURSOR', 'SELECT id FROM gs.cur ORDER BY k, id') \g /dev/null
COMMIT;
SELECT is(gs.compare('SELECT id FROM gs.cur ORDER BY k, id'), 'same', 'a sort after cursors that were left');

-- WITH HOLD
BEGIN;
SELECT gs.declare('SCROLL CURSOR WITH HOLD', 'SELECT id, t FROM gs.cur ORDER BY t, id') \g /dev/null
SELECT is(gs.walk('FORWARD 1000', 'BACKWARD 10'), 'same', 'WITH HOLD before the commit');
COMMIT;
SELECT is(gs.walk('FORWARD 20', 'BACKWARD 2000', 'LAST', 'ABSOLUTE 777', 'FORWARD ALL'), 'same', 'WITH HOLD after the commit');
CLOSE g;
CLOSE n;
BEGIN;
SELECT gs.declare('NO SCROLL CURSOR WITH HOLD', 'SELECT id FROM gs.cur ORDER BY k, id') \g /dev/null
SELECT is(gs.walk('FORWARD 500'), 'same', 'WITH HOLD NO SCROLL before the commit');
COMMIT;
SELECT is(gs.walk('FORWARD ALL'), 'same', 'WITH HOLD NO SCROLL after the commit');
CLOSE g;
CLOSE n;
BEGIN;
SELECT gs.declare('CURSOR WITH HOLD', 'SELECT id FROM gs.cur ORDER BY k DESC, id') \g /dev/null
COMMIT;
SELECT is(gs.walk('FORWARD ALL'), 'same', 'WITH HOLD, no FETCH before the commit');
CLOSE g;
CLOSE n;

-- several at once, in turns
BEGIN;
SET LOCAL gpusort.force = on;
SET LOCAL gpusort.min_rows = 0;
DECLARE c1 SCROLL CURSOR FOR SELECT id FROM gs.cur ORDER BY k, id;
DECLARE c2 SCROLL CURSOR FOR SELECT id FROM gs.cur ORDER BY k DESC, id DESC;
DECLARE c3 NO SCROLL CURSOR FOR SELECT id FROM gs.cur ORDER BY t, id;
SELECT is((SELECT array_agg(ROW(gs.fetch('c1', 'FORWARD 50'), gs.fetch('c2', 'FORWARD 30'), gs.fetch('c3', 'FORWARD 70'))::text) FROM generate_series(1, 100)),
		  (WITH a AS MATERIALIZED (SELECT gs.native_rows('SELECT id FROM gs.cur ORDER BY k, id') AS c1,
								   gs.native_rows('SELECT id FROM gs.cur ORDER BY k DESC, id DESC') AS c2, gs.native_rows('SELECT id FROM gs.cur ORDER BY t, id') AS c3)
		   SELECT array_agg(ROW(c1[i * 50 + 1 : i * 50 + 50], c2[i * 30 + 1 : i * 30 + 30], c3[i * 70 + 1 : i * 70 + 70])::text) FROM a, generate_series(0, 99) i),
		  'three cursors in turns');
COMMIT;

-- transactions
BEGIN;
SELECT gs.declare('SCROLL CURSOR', 'SELECT id FROM gs.cur ORDER BY k, id') \g /dev/null
SELECT is(gs.walk('FORWARD 100'), 'same', 'before a savepoint');
SAVEPOINT s;
SELECT gs.walk('FORWARD 100', 'BACKWARD 20') AS after_savepoint \gset
ROLLBACK TO s;
SELECT is(:'after_savepoint'::text, 'same', 'after a savepoint');
SELECT throws_ok('SELECT 1/0', '22012', NULL, 'an error that is caught');
SELECT is(gs.walk('FORWARD 100', 'ABSOLUTE 3'), 'same', 'after a rollback to the savepoint');
SAVEPOINT s2;
SET LOCAL gpusort.force = on;
DECLARE inner_cursor CURSOR FOR SELECT id FROM gs.cur ORDER BY t, id;
SELECT cardinality(gs.fetch('inner_cursor', 'FORWARD 10')) AS inner_rows \gset
ROLLBACK TO s2;
SELECT is(:inner_rows, 10, 'a cursor within a savepoint');
SELECT throws_ok('FETCH inner_cursor', '34000', NULL, 'is gone with the rollback');
SELECT is(gs.walk('FORWARD 10', 'LAST', 'PRIOR'), 'same', 'the one outside is not');
COMMIT;
BEGIN;
SELECT gs.declare('SCROLL CURSOR', 'SELECT id FROM gs.cur ORDER BY k, id') \g /dev/null
SELECT gs.walk('FORWARD 100') AS before_rollback \gset
ROLLBACK;
SELECT is(:'before_rollback'::text, 'same', 'before a rollback');
SELECT is(gs.compare('SELECT id FROM gs.cur ORDER BY k, id'), 'same', 'a sort after the rollback');

-- the table changes below an open cursor
BEGIN;
SELECT gs.declare('SCROLL CURSOR', 'SELECT id, k FROM gs.cur ORDER BY k, id') \g /dev/null
DELETE FROM gs.cur WHERE id % 2 = 0;
SELECT gs.walk('FORWARD 500', 'ABSOLUTE 0', 'FORWARD ALL') AS after_delete \gset
ROLLBACK;
SELECT is(:'after_delete'::text, 'same', 'after a DELETE the cursor has its snapshot');
BEGIN;
SET LOCAL gpusort.force = on;
SET LOCAL gpusort.min_rows = 0;
CREATE TABLE gs.cur_updated AS SELECT id, 0 AS n, k FROM gs.cur WHERE id <= 1000;
DO $$
DECLARE
	c CURSOR FOR SELECT * FROM gs.cur_updated ORDER BY k DESC, id FOR UPDATE;
	i int := 0;
BEGIN
	FOR r IN c LOOP
		i := i + 1;
		UPDATE gs.cur_updated SET n = i WHERE CURRENT OF c;
	END LOOP;
END $$;
SELECT is((SELECT array_agg(id::text ORDER BY n) FROM gs.cur_updated),
		  (SELECT array_agg(id::text ORDER BY k DESC, id) FROM gs.cur_updated), 'UPDATE ... WHERE CURRENT OF');
COMMIT;

SELECT * FROM finish();
