-- made.sql - values made up of a row's number and a seed, for the suites of bench/workloads whose rows are
-- made here: the same number and seed always have the same value.
CREATE SCHEMA made;

-- from 0 to below 1
CREATE FUNCTION made.u(n bigint, seed bigint) RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
	$$ SELECT (hashint8extended(n, seed) & 4503599627370495) / 4503599627370496.0::float8 $$;

-- from 1 to count: all alike with a power of 1, small ones the more often the higher it is
CREATE FUNCTION made.skew(n bigint, seed bigint, count bigint, power float8) RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
	$$ SELECT 1 + floor(count * ((hashint8extended(n, seed) & 4503599627370495) / 4503599627370496.0::float8) ^ power)::int $$;

-- up to eight words of 64, some with capitals, accents and hyphens
CREATE FUNCTION made.words(n bigint, seed bigint, count int) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
	$$ SELECT string_agg((ARRAY['river', 'lake', 'forest', 'hill', 'stone', 'cloud', 'rain', 'winter', 'summer', 'café', 'naïve', 'well-known', 'mother', 'brother', 'night', 'day',
		'gold', 'silver', 'paper', 'bridge', 'market', 'station', 'letter', 'garden', 'window', 'door', 'key', 'wind', 'fire', 'water', 'earth', 'iron',
		'horse', 'wolf', 'bird', 'fish', 'tiger', 'island', 'mountain', 'valley', 'city', 'village', 'street', 'house', 'tower', 'ship', 'train', 'road',
		'red', 'green', 'blue', 'white', 'black', 'old', 'new', 'great', 'little', 'last', 'first', 'lost', 'secret', 'über', 'déjà', 'co-op'])[1 + (hashint8extended(n, seed + 77) >> (6 * i) & 63)::int],
		' ' ORDER BY i) FROM generate_series(0, count - 1) i $$;

-- a page's address: hosts have many pages or few, and begin alike
CREATE FUNCTION made.url(n bigint, seed bigint) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
	$$ SELECT 'http://' || CASE WHEN made.u(n, seed + 1) < 0.6 THEN 'www.' ELSE '' END
		|| CASE WHEN made.u(n, seed + 2) < 0.02 THEN 'google.com' ELSE 'host' || made.skew(n, seed + 3, 2000, 3) || (ARRAY['.ru', '.com', '.org', '.net'])[made.skew(n, seed + 4, 4, 2)] END
		|| '/' || replace(made.words(n, seed + 5, 1), ' ', '-') || '/' || CASE WHEN made.u(n, seed + 6) < 0.5 THEN 'index.html?page=' || n ELSE replace(made.words(n, seed + 7, 3), ' ', '_') || '/' || n END $$;
