# FuzzTypes - the types and collations that the fuzzer makes columns of.
#
# A type is a hash:
#   sql     the type as a column is declared
#   base    the type of its literals, where sql is a domain or has a modifier
#   value   an expression of a value, with N for a number from 0 to 2^31 - 1:
#           the same N gives the same value
#   edges   literals that are worth having among the values
#   text    it takes a COLLATE clause
#   number  an integer that fits int8: expressions are made of it
#   canon   an expression, with X for the value, that is the same text for all
#           values that are equal.  Types that have it have values that are equal
#           and look different, and which of them GROUP BY shows is PostgreSQL's
#           choice.
package FuzzTypes;

use strict;
use warnings;

use Exporter qw(import);
use FuzzRandom;

our @EXPORT = qw(random_type random_collations libc_collations value_expression fixtures is_inexact canonical
	collations_for @DIRECTIONS);

our @DIRECTIONS = ('', ' ASC', ' DESC', ' ASC NULLS FIRST', ' DESC NULLS LAST', ' NULLS FIRST', ' DESC NULLS FIRST',
	' ASC NULLS LAST');

# Collations that are not deterministic.
my $loose = qr/^(?:fz\.(?:ci|base)|r\.loose)$/;

# Strings near each other: case, blanks, bytes above 127, NULs of C strings' ends, shared prefixes.
my @strings = ('', ' ', 'a', 'A', 'b', 'B', 'ab', 'aB', 'Ab', 'a b', 'a-b', 'a ', ' a', 'a  ', 'z', 'Z', 'Zz', 'e',
"\x{e9}", "\x{c9}", 'E',
	"e\x{301}", "a\x{302}\x{323}", "a\x{323}\x{302}", "\x{f6}", "\x{e4}", "\x{e5}", "\x{c5}", 'cote', "cot\x{e9}",
		"c\x{f4}te", "c\x{f4}t\x{e9}", 'co-op', 'coop', 'CO-OP', 'black bird', 'blackbird', 'black-bird',
	"\x{e01}\x{e40}", "\x{3042}", "\x{30a2}", "a\x{1}b", "a\x{200b}b", "\x{ffff}", "\x{fffd}", "\x{10ffff}", 'a10', 'a9',
	'a09', 'a0000000000000000000009', 'a99999999999999999999999',
	# what the C library's locales see on other levels than one, and contract
	'11a', '1 1a', '1-1a', "1 1\x{e1}", '11A', '-', ' - ', '--', '...', '(a)', "\x{ad}", "a\x{ad}b", "\x{1f600}a",
		"\x{1f1e9}\x{1f1ea}", "\x{e000}", "\x{378}", 'ch', 'cH', 'Ch', 'cz', 'hz', 'dzs', 'ddzs', 'aa',
	"\x{130}", "\x{131}", 'i', 'I', "\x{df}", 'ss', "a\x{30a}", "\x{301}", "\x{3042}\x{3099}", "\x{30fc}\x{30a2}",
	"\x{4e00}\x{4e8c}",
	"\x{ff}", "\x{65e5}\x{672c}", "\x{1f600}", '10', '9', '009', '1.5', '-1', '_', '~', '0123456789abcd',
	'0123456789abcde', '0123456789abcdef',
	'0123456789abcdefghijklmn', '0123456789abcdefghijklmno', '0123456789abcdefghijklmnop', '0123456789abcdefghijklmnoP',
	'x' x 100,
	('x' x 99) . 'y', 'https://www.example.org/warehouse/region-4/customers/orders/',
	'https://www.example.org/warehouse/region-4/customers/ordera',
	'https://www.example.org/warehouse/region-4/customers/orders/zz', ('long ' x 60) . 'a', ('long ' x 60) . 'b');

# Characters that collations make something of: blanks and signs, case, accents of letters and after
# them, contractions, digits, scripts, and what is left out of account.
my @alphabets = map { s/\\x\{(\w+)\}/chr hex $1/ger } (
	q{aAbBeE -_.,/()zZ0},
	q{aAeE\x{e9}\x{e8}\x{c9}\x{ea}\x{301}\x{302}\x{323}oOuz-},
	q{chCHhldzsylLjnga},
	q{0129aA.\x{665}\x{ff11}\x{30a2}\x{3042}\x{ff71}\x{3099}\x{30fc}\x{6f22}\x{5b57}},
	q{aAb\x{1}\x{7f}\x{ad}\x{200b}\x{200d}\x{34f}\x{640}\x{e40}\x{e01}\x{e02}\x{627}\x{644}\x{df}},
	q{\x{e4}\x{f6}\x{fc}\x{c4}\x{e5}\x{f8}\x{e6}\x{142}aouswxyz},
	# hardly a letter
	q{ -.,_!"()/11aA1-},
	q{\x{1f600}\x{1f1e6}\x{1f1e7}\x{200b}\x{ad}\x{e000}\x{378}\x{10ffff}\x{ffff}a1 -\x{301}b\x{e9}});

my @texts = (
	(map { [ 5 => "substr(translate(md5(N::text), '0123456789abcdef', '$_'), 1, (N % 23)::int)" ] } @alphabets),
	(map { [ 1 => "'one head ' || translate(md5(N::text), '0123456789abcdef', '$_')" ] } @alphabets),
	[ 25 => q{substr(md5(N::text), 1, 8)} ],
	[ 15 => q{'https://example.org/a/common/path/' || N} ],
	# prefixes that all share, that most share, that many share up to some place
	[ 6 => q{'https://www.example.org/warehouse/region-4/customers/orders/' || lpad((N % 1000000)::text, 12, '0')} ],
	[ 6 => q{CASE WHEN N % 100 = 7 THEN substr(md5(N::text), 1, 5) ELSE '/var/lib/a/directory/with/a/long/name/' }
		. q{|| N END} ],
	[ 4 => q{repeat('prefix-', (N % 4 * 5)::int) || (N % 1000)} ],
	[ 4 => q{CASE WHEN N < 300 THEN 'the first rows have this common head ' || N % 50 ELSE 'the others do not ' }
		. q{|| N END} ],
	[ 3 => q{repeat(chr(233), 30) || (N % 5000)} ],
	[ 15 => q{(N % 100000)::text} ],
	[ 10 => q{chr(65 + (N % 58)::int) || chr(97 + (N / 58 % 26)::int)} ],
	[ 10 => q{(ARRAY['apple','Apple','APPLE','banana','Banana','cherry pie','cherry-pie','cherrypie','zebra'])[1 + N % 9] }
		. q{|| N % 7} ],
	[ 10 => q{repeat(md5(N::text), (N % 5)::int)} ],
	[ 5  => q{repeat('x', (N % 40)::int)} ],
	[ 5  => q{chr(192 + (N % 300)::int) || (N / 300)} ],
	# beginnings that most have in common, and what parts from them at every place
	[ 8 => q{CASE N % 9 WHEN 0 THEN left('/usr/share/doc/packages/lib', (N / 9 % 28)::int) || chr(33 + (N % 90)::int) }
		. q{ELSE '/usr/share/doc/packages/lib' || N % 5000 END} ],
	[ 5 => q{(ARRAY['https://www.example.com/a/b/', 'https://cdn.example.net/assets/images/of/things/', }
		. q{'http://localhost/'])[1 + N % 3] || md5(N::text)} ],
	[ 4 => q{'customer-' || lpad((N % 1000000)::text, 12, '0')} ],
	# beyond 2 kB and not compressible: out of line
	[ 3 => q{(SELECT string_agg(md5((N + g)::text), '') FROM generate_series(1, 100) g)}, 'wide' ],
	# compressible, inline and out of line
	[ 2 => q{repeat('0123456789abcdefghijklmnopqrstuvwxyz', CASE WHEN N % 400 = 7 THEN 20000 }
		. q{ELSE 100 + (N % 300)::int END) || N}, 'wide' ],
);

# Addresses of both families with many zero bits, so that networks hold others, of any length.
my $inet = q{CASE WHEN N % 2 = 0 THEN set_masklen('0.0.0.0'::inet + (fz.h(N, 1) & fz.h(N, 2) & 4294967295), }
	. q{(fz.h(N, 3) % 33)::int)}
	. q{ ELSE set_masklen(regexp_replace(translate(md5(N::text), '23456789abcde', '0000000000000'), '(....)(?!$)', '\1:', }
		. q{'g')::inet, (fz.h(N, 3) % 129)::int) END};

my %types = (
	bool => { weight => 3, value => '(N % 2 = 1)', edges => [qw(t f)] },
	int2 => { weight => 5, number => 1, value => '((N * 7919) % 65536 - 32768)::int2',
	edges => [qw(-32768 32767 0 -1 1)] },
	int4 => { weight => 14, number => 1, value => '((N * 2654435761) % 4294967296 - 2147483648)::int4',
	edges => [qw(-2147483648 2147483647 0 -1 1)] },
	int8 => { weight => 8, number => 1, value => '(fz.h(N, 5) - 4611686018427387904)',
	edges => [qw(-9223372036854775807 9223372036854775807 0 -1 1 4294967296 -4294967296)] },
	oid => { weight => 2, value => '((N * 2654435761) % 4294967296)::oid',
	edges => [qw(0 1 2147483647 2147483648 4294967295)] },
	float4 => { weight => 5, value => '(((N % 100003) - 50000)::float4 / 7)',
	edges => [qw(NaN Infinity -Infinity -0 0 1e-40 -1e-40 3.4e38 -3.4e38 1)], canon => '(X + 0::float4)' },
	float8 => { weight => 6, value => '(((N % 1000003) - 500000)::float8 / 7)',
	edges => [qw(NaN Infinity -Infinity -0 0 5e-324 -5e-324 1.7e308 -1.7e308 1)], canon => '(X + 0::float8)' },
	numeric => { weight => 6, value => '((N - 1000000)::numeric / (1 + N % 3))',
		edges => [ qw(NaN Infinity -Infinity 0 0.00 1 1.0 1.00 -1 -1e-20 1e-20 1e100 -1e100 9999 10000 10001 0.0001 0.00001
			99999999999999999 99999999999999999.1 99999999999999999.2
			123456789012345678901234567890 123456789012345678901234567891), '1' x 1000, '-' . '1' x 1000, '1' x 1000 . '.5' ],
				canon => 'trim_scale(X)' },
	numeric_long => { weight => 3, sql => 'numeric(60,20)',
		value => '((12345678901234567890123456789 + N % 90)::numeric * (1 - 2 * (N % 2)) + (N % 700)::numeric / 1e18)',
		edges => [qw(0 NaN 12345678901234567890123456789 12345678901234567890123456789.1
			-12345678901234567890123456789 1e-20)],
		canon => 'trim_scale(X)' },
	numeric_mod => { weight => 3, sql => 'numeric(12,3)', value => '((N % 100000000)::numeric / 1000)',
		edges => [qw(0 -0.001 0.001 999999999.999 -999999999.999 NaN)] },
	date => { weight => 4, value => q{('2000-01-01'::date + (N % 100000)::int - 50000)},
	edges => [ qw(infinity -infinity 2000-01-01 5874897-12-31), '4713-01-01 BC' ] },
	time => { weight => 2, value => q{('00:00'::time + (N % 86400000) * interval '1 ms')},
	edges => [qw(00:00 24:00:00 23:59:59.999999 12:00)] },
	timetz => { weight => 2, value =>
		q{((time '00:00' + (N % 86400) * interval '1 s')::text || (ARRAY['+00', '+01', '-11', '+05:30'])[1 + N % 4])::timetz},
		edges => [qw(12:00+00 13:00+01 11:00-01 17:30+05:30 00:00+15 24:00-15 24:00+00)] },
	timestamp => { weight => 3,
		value => q{('2000-01-01'::timestamp + (N % 100000000) * interval '37 minutes' - interval '20 years')},
		edges => [ qw(infinity -infinity 2000-01-01), '4713-01-01 BC', '294276-12-31 23:59:59.999999' ] },
	timestamptz => { weight => 3,
		value => q{('2000-01-01 00:00+00'::timestamptz + (N % 100000000) * interval '1 minute' - interval '20 days')},
		edges => [ qw(infinity -infinity), '2000-01-01 00:00+00', '294276-12-31 12:00+00' ] },
	interval => { weight => 3, value => q{((N % 100000 - 5000) * interval '1 hour')},
		edges => [ '1 month', '30 days', '720 hours', '-1 month', '-30 days', '1 month -1 day', '29 days', '29 days 24 hours',
			'0', '178000000 years', '-178000000 years', '1 day', '24 hours', '1 microsecond', '-1 microsecond' ],
		canon => q{justify_interval(X)} },
	money => { weight => 1, value => '((N % 10000000) - 5000000)::int4::money',
		edges => [qw(0 1 -1 92233720368547758.07 -92233720368547758.08)] },
	uuid => { weight => 3, value => 'md5(N::text)::uuid',
	edges => [ '00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff',
	'80000000-0000-0000-0000-000000000000', '00000000-0000-0000-8000-000000000000' ] },
	bytea => { weight => 3, value => q{decode(substr(md5(N::text), 1, (N % 16)::int * 2), 'hex')},
	edges => [ map { "\\x$_" } '', '00', '0000', 'ff', 'ff00', '30' x 14, '30' x 14 . '00', '30' x 15, '30' x 22,
	'30' x 22 . '00', '30' x 40 ] },
	bit => { weight => 1, sql => 'bit(9)', value => '(N % 512)::int4::bit(9)',
	edges => [qw(000000000 111111111 100000000)] },
	varbit => { weight => 2, value => q{substring((N % 65536)::int4::bit(16)::varbit, 1, (N % 17)::int)},
	edges => [ '', qw(0 1 00 01 10 000 00000000 000000000 100000000 1000000000), '1' x 130, '1' x 130 . '0', '0' x 64,
	'0' x 63 ] },
	inet => { weight => 3, value => $inet,
		edges => [qw(::1 ::/0 0.0.0.0/0 0.0.0.0 10.0.0.0/8 10.0.0.0/16 10.0.0.1/8 10.0.0.1 255.255.255.255 fe80::/64
			fe80::1/64 fe80::1 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff)] },
	cidr => { weight => 2, value => "network($inet)",
		edges => [qw(::/0 0.0.0.0/0 10.0.0.0/8 10.0.0.0/16 10.0.0.0/32 fe80::/64 fe80::/128 255.255.255.255/32)] },
	macaddr => { weight => 1, value => q{lpad(to_hex(N * 70001), 12, '0')::macaddr},
	edges => [qw(00:00:00:00:00:00 ff:ff:ff:ff:ff:ff 80:00:00:00:00:00 00:00:00:80:00:00)] },
	macaddr8 => { weight => 1, value => q{lpad(to_hex(N * 2654435761), 16, '0')::macaddr8},
	edges => [qw(00:00:00:00:00:00:00:00 ff:ff:ff:ff:ff:ff:ff:ff 80:00:00:00:00:00:00:00 00:00:00:00:80:00:00:00)] },
	char_one => { weight => 2, sql => '"char"', value => '(N % 256 - 128)::int4::"char"', edges => [qw(a z 0)] },
	pg_lsn => { weight => 1, value => q{('0/0'::pg_lsn + N * 4000000000::numeric)},
		edges => [qw(0/0 0/1 FFFFFFFF/FFFFFFFF 80000000/0 7FFFFFFF/FFFFFFFF)] },
	xid8 => { weight => 1, value => q{(N * 4294967296)::text::xid8},
		edges => [qw(0 1 18446744073709551615 9223372036854775808 9223372036854775807)] },
	tid => { weight => 1, value => q{('(' || N % 10000 || ',' || N % 100 || ')')::tid},
		edges => [ '(0,0)', '(0,1)', '(4294967295,65535)' ] },
	mood => { weight => 3, sql => 'fz.mood',
		value => q{(ARRAY['sad','so-so','ok','happy','ecstatic']::fz.mood[])[1 + N % 5]}, edges => [qw(sad happy)] },
	# what is made of others
	jsonb => { weight => 4, canon => '(X IS NULL)',
		value => q{(ARRAY[to_jsonb(N % 100), to_jsonb(N / 7.0), to_jsonb(substr(md5(N::text), 1, 3)), }
			. q{jsonb_build_object('a', N % 10, 'b', N), jsonb_build_object('a', N % 3, 'b', jsonb_build_array(N % 4, NULL, 'x' }
			. q{|| N % 5)), jsonb_build_array(N % 5, N % 7)])[1 + N % 6]},
		edges => [ 'null', '[]', '{}', '"a"', '"A"', '""', 'true', 'false', '12', '12.0', '12.00', '-1e-30', '1e100', '[1]',
			'[[]]', '[{}]', '[null]', '[[], 1]', '{"a": 1}', '{"a": []}', '{"b": 1}', '{"aa": 1, "b": 2}', '{"": null}' ] },
	int4_array => { weight => 4, sql => 'int4[]', value => '(ARRAY[N % 10, N, N % 3, NULL])[1:N % 5]::int4[]',
		edges => [ '{}', '{NULL}', '{1,NULL}', '{1}', '{{1,2},{3,4}}', '{{1},{2}}', '{{1,2}}', '[0:1]={1,2}', '{1,2}',
		'[5:6]={1,2}' ] },
	int8_array => { weight => 1, sql => 'int8[]', value => 'ARRAY[N % 5 - 2, N::int8 << 20]',
		edges => [ '{}', '{-9223372036854775808,9223372036854775807}' ] },
	text_array => { weight => 3, sql => 'text[]', value => q{ARRAY['a' || N % 10, substr(md5(N::text), 1, (N % 9)::int)]},
		edges => [ '{}', '{NULL}', '{a,B}', '{A,b}', '{"",""}', '{co-op}', '{coop}' ] },
	text_c_array => { weight => 2, sql => 'text[] COLLATE "C"', base => 'text[]',
		value => q{ARRAY[repeat('x', (N % 30)::int), N::text]}, edges => [ '{}', '{NULL}', '{a}', '{a,""}', '{"",a}' ] },
	text_icu_array => { weight => 1, sql => 'text[] COLLATE "en-x-icu"', base => 'text[]',
		value => q{ARRAY['a' || N % 10, substr(md5(N::text), 1, (N % 9)::int)]},
		edges => [ '{}', '{NULL}', '{a,B}', '{A,b}', '{co-op}', '{coop}' ] },
	numeric_array => { weight => 2, sql => 'numeric[]', value => 'ARRAY[(N % 7 - 3)::numeric / 3, N::numeric * 1e15 / 7]',
		edges => [ '{1.0}', '{1.00,2}', '{1,1}', '{NaN}', '{-Infinity}', '{1e100}', '{-1e100,NULL}' ],
		canon => '(X IS NULL)' },
	float8_array => { weight => 1, sql => 'float8[]', value => 'ARRAY[N % 7, (N % 1000)::float8 / 7]',
		edges => [ '{-0}', '{0}', '{0,1}', '{-0,2}', '{NaN}', '{Infinity,NaN}' ], canon => '(X IS NULL)' },
	bytea_array => { weight => 1, sql => 'bytea[]',
		value => q{ARRAY[decode(substr(md5(N::text), 1, (N % 4)::int * 2), 'hex'), decode('00' }
		. q{|| lpad(to_hex(N % 256), 2, '0'), 'hex')]},
		edges => [ '{}', '{"\\\\x00"}', '{"\\\\x0000"}', '{"\\\\x","\\\\x"}' ] },
	uuid_array => { weight => 1, sql => 'uuid[]', value => 'ARRAY[md5((N % 9)::text)::uuid, md5(N::text)::uuid]',
		edges => [ '{}', '{NULL}' ] },
	mood_array => { weight => 1, sql => 'fz.mood[]', value =>
		q{(ARRAY['sad','so-so','ok','happy','ecstatic']::fz.mood[])[1 + N % 5 : 1 + N % 7]}, edges => [ '{sad}', '{}' ] },
	int4range => { weight => 2, value => 'int4range((N % 1000)::int, (N % 1000 + N % 7)::int)',
		edges => [ 'empty', '(,)', '(,5)', '[5,)', '[1,4]', '(0,5)' ] },
	numrange => { weight => 2,
		value => q{numrange((N % 50)::numeric / 3, (N % 50 + N % 7)::numeric, (ARRAY['[]','[)','(]','()'])[1 + N % 4])},
		edges => [ 'empty', '(,)', '(,5)', '(,5]', '(5,)', '[5,)', '[1.0,2]', '[1.00,2]', '[NaN,]' ],
		canon => '(X IS NULL)' },
	tstzrange => { weight => 1,
		value => q{tstzrange('2000-01-01 00:00+00'::timestamptz + (N % 999) * interval '1 h', }
		. q{'2000-03-01 00:00+00'::timestamptz + (N % 77) * interval '1 h')},
		edges => [ 'empty', '(,)', '[-infinity,infinity]', '(infinity,]' ] },
	int8multirange => { weight => 2,
		value => 'int8multirange(int8range(N % 9, N % 9 + N % 4), int8range(20 + N % 5, CASE WHEN N % 3 > 0 THEN 40 END))',
		edges => [ '{}', '{(,)}', '{[1,2)}', '{[1,2),[3,4)}' ] },
	nummultirange => { weight => 1,
		value => q{nummultirange(numrange((N % 9)::numeric / 3, (N % 9 + N % 4)::numeric, '[]'), }
		. q{numrange(20 + N % 5, CASE WHEN N % 3 > 0 THEN 40 END, '()'))},
		edges => [ '{}', '{(,)}', '{[1.0,2]}', '{[1.00,2]}', '{[1,2),(2,3]}', '{[1,1],(2,NaN)}' ], canon => '(X IS NULL)' },
	jsonb_array => { weight => 1, sql => 'jsonb[]', value => q{ARRAY[to_jsonb(N % 5), jsonb_build_object('a', N % 99)]},
		edges => [ '{}', '{NULL}', '{"null"}', '{"[]","{}"}', '{1.0,2}', '{1,1}' ], canon => '(X IS NULL)' },
	pair => { weight => 3, sql => 'fz.pair', value => q{ROW((N % 10)::int, N::text)::fz.pair},
		edges => [ '(,)', '(1,)', '(,a)', '(1,"")' ] },
	triple => { weight => 2, sql => 'fz.triple',
		value => q{ROW(substr(md5(N::text), 1, 2), ARRAY[ROW((N % 3)::int, 'p' || N % 5)::fz.pair], N % 1000)::fz.triple},
		edges => [ '(,,)', '(a,{},1)', '(A,,1)', '(a,"{NULL}",)' ] },
	int_list => { weight => 1, sql => 'fz.int_list', base => 'int4[]', value => 'ARRAY[N % 4, N % 5]::int4[]',
		edges => [ '{}', '{1,NULL}' ] },
	tsvector => { weight => 2,
		value => q{('w' || N % 50 || (ARRAY['', ':1', ':' || 1 + N % 9 || 'A', ':2,' || 3 + N % 5, ' x' || N % 3 || ':7B'])}
			. q{[1 + N % 5])::tsvector},
		edges => [ '', 'a', 'a b', 'a:1 b:2', 'a:1A', 'a:1,2', 'a:16383' ] },
	tsquery => { weight => 2,
		value => q{('w' || N % 50 || (ARRAY['', ':A', ':*B', ' & !w' || N % 9, ' <-> w' || N % 7, ' | (w1 <' || 1 + N % 3 }
			. q{|| '> w2:C)'])[1 + N % 6])::tsquery},
		edges => [ '', 'a', 'b', 'a & b', '!a', '!!a', 'a | b', 'a <-> b', 'a <2> b', 'a:A', 'a:*',
			'a <-> (b & c)', 'ab' ],
		canon => q{regexp_replace((X)::text, ':[*A-D]+', '', 'g')} },
	oidvector => { weight => 1, value => q{(N % 50 || ' ' || N % 3)::oidvector},
	edges => [ '', '1', '1 2', '4294967295' ] },
	whole => { weight => 2, sql => 'fz.whole', base => 'int4', number => 1, value => '(N % 1000000)::int4',
	edges => [qw(0 2147483647)] },
	amount => { weight => 1, sql => 'fz.amount', base => 'numeric', value => '(N::numeric / 4)',
	edges => [qw(0 0.0 NaN 1e50)], canon => 'trim_scale(X)' },
	day => { weight => 1, sql => 'fz.day', base => 'date', value => q{('2000-01-01'::date + (N % 1000)::int)},
	edges => ['infinity'] },
	text => { weight => 22, text => 1 },
	varchar => { weight => 5, text => 1 },
	varchar_mod => { weight => 3, sql => 'varchar(20)', text => 1, cut => 20 },
	bpchar => { weight => 4, sql => 'char(20)', text => 1, cut => 20 },
	name => { weight => 2, text => 1, cut => 40 },
	citext => { weight => 2, sql => 'fz.citext', text => 1, canon => '(X IS NULL)' },
	# what its operator class abbreviates; where PostGIS is not there, bytes, whose keys may be by such a class
	geometry => { weight => 3, sql => 'fz.geometry', canon => '(X IS NULL)', value => 'fz.shape(N)',
		edges => [ 'POINT EMPTY', 'POLYGON EMPTY', 'POINT(0 0)', 'POINT(1 1)', 'LINESTRING(0 0,1 1)', 'LINESTRING(1 1,0 0)',
			'POINT(1e300 -1e300)', 'POLYGON((0 0,0 1,1 1,0 0))' ] },
	word => { weight => 2, sql => 'fz.word', base => 'text', text => 1 },
	word_c => { weight => 2, sql => 'fz.word_c', base => 'text', text => 1 },
	word_icu => { weight => 1, sql => 'fz.word_icu', base => 'text', text => 1 },
);
my @type_weights = map { ($types{$_}{weight} => $_) } sort keys %types;

# What every database of the fuzzer has; run once.
sub fixtures
{
	return <<'SQL';
CREATE SCHEMA fz;
CREATE FUNCTION fz.h(bigint, bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
	AS 'SELECT hashint8extended($1, $2) & 9223372036854775807';
CREATE FUNCTION fz.same(bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS 'BEGIN RETURN $1; END';
-- another extension's type, if it is there
DO $$ BEGIN
	IF EXISTS (SELECT FROM pg_available_extensions WHERE name = 'citext') THEN
		CREATE EXTENSION citext SCHEMA fz;
	ELSE
		CREATE DOMAIN fz.citext AS text;
	END IF;
END $$;
DO $$ BEGIN
	IF EXISTS (SELECT FROM pg_available_extensions WHERE name = 'postgis') THEN
		CREATE EXTENSION postgis SCHEMA fz;
		CREATE FUNCTION fz.shape(n bigint) RETURNS fz.geometry LANGUAGE sql IMMUTABLE AS
			'SELECT CASE WHEN $1 % 7 = 0 THEN fz.st_makeline(fz.st_makepoint($1 % 30, $1 % 11), fz.st_makepoint($1 % 5, 1))
				ELSE fz.st_makepoint($1 % 1000 - 500, $1 % 77 / 7.0) END';
	ELSE
		CREATE DOMAIN fz.geometry AS bytea;
		CREATE FUNCTION fz.shape(n bigint) RETURNS fz.geometry LANGUAGE sql IMMUTABLE AS
			'SELECT decode(substr(md5($1::text), 1, 8), ''hex'')';
	END IF;
END $$;
CREATE TYPE fz.mood AS ENUM ('sad', 'ok', 'ecstatic');
ALTER TYPE fz.mood ADD VALUE 'happy' BEFORE 'ecstatic';
ALTER TYPE fz.mood ADD VALUE 'so-so' BEFORE 'ok';
CREATE TYPE fz.pair AS (a int, gone text, b text COLLATE "C");
ALTER TYPE fz.pair DROP ATTRIBUTE gone;
CREATE TYPE fz.triple AS (a text, b fz.pair[], c int8);
CREATE DOMAIN fz.int_list AS int4[];
CREATE DOMAIN fz.whole AS int4 CHECK (VALUE >= 0);
CREATE DOMAIN fz.amount AS numeric;
CREATE DOMAIN fz.day0 AS date;
CREATE DOMAIN fz.day AS fz.day0;
CREATE DOMAIN fz.word AS text;
CREATE DOMAIN fz.word_c AS text COLLATE "C";
CREATE DOMAIN fz.word_icu AS text COLLATE "en-x-icu";
CREATE COLLATION fz.ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE COLLATION fz.base (provider = icu, locale = 'und-u-ks-level1', deterministic = false);
CREATE COLLATION fz.digits (provider = icu, locale = 'en-u-kn-true');
CREATE COLLATION fz.upper (provider = icu, locale = 'en-u-kf-upper');
CREATE COLLATION fz.shifted (provider = icu, locale = 'en-u-ka-shifted');
CREATE COLLATION fz.backwards (provider = icu, locale = 'fr-CA-u-kb-true');
CREATE COLLATION fz.phonebook (provider = icu, locale = 'de-u-co-phonebk');
CREATE FUNCTION fz.abs_lt(int, int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT abs($1::int8) < abs($2::int8)';
CREATE FUNCTION fz.abs_le(int, int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT abs($1::int8) <= abs($2::int8)';
CREATE FUNCTION fz.abs_eq(int, int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT abs($1::int8) = abs($2::int8)';
CREATE FUNCTION fz.abs_ge(int, int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT abs($1::int8) >= abs($2::int8)';
CREATE FUNCTION fz.abs_gt(int, int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT abs($1::int8) > abs($2::int8)';
CREATE FUNCTION fz.abs_cmp(int, int) RETURNS int LANGUAGE sql IMMUTABLE
	AS 'SELECT sign(abs($1::int8) - abs($2::int8))::int';
CREATE OPERATOR fz.<# (FUNCTION = fz.abs_lt, LEFTARG = int, RIGHTARG = int,
	COMMUTATOR = OPERATOR(fz.>#), NEGATOR = OPERATOR(fz.>=#));
CREATE OPERATOR fz.<=# (FUNCTION = fz.abs_le, LEFTARG = int, RIGHTARG = int);
CREATE OPERATOR fz.=# (FUNCTION = fz.abs_eq, LEFTARG = int, RIGHTARG = int, COMMUTATOR = OPERATOR(fz.=#), MERGES);
CREATE OPERATOR fz.>=# (FUNCTION = fz.abs_ge, LEFTARG = int, RIGHTARG = int);
CREATE OPERATOR fz.># (FUNCTION = fz.abs_gt, LEFTARG = int, RIGHTARG = int);
CREATE OPERATOR CLASS fz.abs_ops FOR TYPE int USING btree AS
	OPERATOR 1 fz.<#, OPERATOR 2 fz.<=#, OPERATOR 3 fz.=#, OPERATOR 4 fz.>=#, OPERATOR 5 fz.>#,
	FUNCTION 1 fz.abs_cmp(int, int);
-- as if it had no sign: fast, being PostgreSQL's own functions
CREATE FUNCTION fz.u_lt(int, int) RETURNS bool LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'oidlt';
CREATE FUNCTION fz.u_le(int, int) RETURNS bool LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'oidle';
CREATE FUNCTION fz.u_eq(int, int) RETURNS bool LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'oideq';
CREATE FUNCTION fz.u_ge(int, int) RETURNS bool LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'oidge';
CREATE FUNCTION fz.u_gt(int, int) RETURNS bool LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'oidgt';
CREATE FUNCTION fz.u_cmp(int, int) RETURNS int LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'btoidcmp';
CREATE OPERATOR fz.<@ (FUNCTION = fz.u_lt, LEFTARG = int, RIGHTARG = int,
	COMMUTATOR = OPERATOR(fz.>@), NEGATOR = OPERATOR(fz.>=@));
CREATE OPERATOR fz.<=@ (FUNCTION = fz.u_le, LEFTARG = int, RIGHTARG = int);
CREATE OPERATOR fz.=@ (FUNCTION = fz.u_eq, LEFTARG = int, RIGHTARG = int, COMMUTATOR = OPERATOR(fz.=@), MERGES);
CREATE OPERATOR fz.>=@ (FUNCTION = fz.u_ge, LEFTARG = int, RIGHTARG = int);
CREATE OPERATOR fz.>@ (FUNCTION = fz.u_gt, LEFTARG = int, RIGHTARG = int);
CREATE OPERATOR CLASS fz.u_ops FOR TYPE int USING btree AS
	OPERATOR 1 fz.<@, OPERATOR 2 fz.<=@, OPERATOR 3 fz.=@, OPERATOR 4 fz.>=@, OPERATOR 5 fz.>@,
	FUNCTION 1 fz.u_cmp(int, int);
-- known by the words that it abbreviates values to, and nothing else
CREATE OPERATOR fz.<^ (FUNCTION = bytealt, LEFTARG = bytea, RIGHTARG = bytea,
	COMMUTATOR = OPERATOR(fz.>^), NEGATOR = OPERATOR(fz.>=^));
CREATE OPERATOR fz.<=^ (FUNCTION = byteale, LEFTARG = bytea, RIGHTARG = bytea);
CREATE OPERATOR fz.=^ (FUNCTION = byteaeq, LEFTARG = bytea, RIGHTARG = bytea, COMMUTATOR = OPERATOR(fz.=^), MERGES);
CREATE OPERATOR fz.>=^ (FUNCTION = byteage, LEFTARG = bytea, RIGHTARG = bytea);
CREATE OPERATOR fz.>^ (FUNCTION = byteagt, LEFTARG = bytea, RIGHTARG = bytea);
CREATE OPERATOR CLASS fz.abbreviated_ops FOR TYPE bytea USING btree AS
	OPERATOR 1 fz.<^, OPERATOR 2 fz.<=^, OPERATOR 3 fz.=^, OPERATOR 4 fz.>=^, OPERATOR 5 fz.>^,
	FUNCTION 1 byteacmp(bytea, bytea), FUNCTION 2 bytea_sortsupport(internal);
SQL
}

sub _quoted
{
	my ($string) = @_;
	$string =~ s/'/''/g;
	return "'$string'";
}

# A type for a column: the hash above with everything filled in, and for strings a collation.  The
# collations are those of the database.  wide says whether long values may be had.
sub random_type
{
	my ($collations, $wide) = @_;
	my $name = weighted(@type_weights);
	my %type = (base => undef, edges => [], %{ $types{$name} }, name => $name);

	$type{sql} //= $name;
	$type{base} //= $type{sql};
	$type{base} =~ s/^(?:varchar|numeric)\(.*/$name eq 'varchar_mod' ? 'text' : 'numeric'/e;
	if ($type{text})
	{
		my $source = weighted(map { ($_->[0] => $_) } grep { $wide && !$type{cut} || !$_->[2] } @texts);

		$type{value} = $source->[1];
		$type{value} = "left($type{value}, $type{cut})" if $type{cut};
		$type{wide} = $source->[2] ? 1 : 0;
		$type{edges} = [ grep { !$type{cut} || length $_ <= $type{cut} } @strings ];
		$type{collation} = one_of(collations_for(\%type, @$collations)) if $name !~ /^word_/ && chance(75);
		# which strings are equal is ICU's to know
		$type{canon} = '(X IS NULL)' if ($type{collation} // '') =~ $loose;
		$type{value} = "($type{value})::$type{base}";
	}
	return \%type;
}

# Two collations of ICU with a language and attributes of their own.  Where a collation is not
# deterministic, PostgreSQL's hashes go by sort keys and its comparisons do not: attributes by which
# these differ are left out.
sub random_collations
{
	my @languages = qw(und en de fr sv da nb cs sk hu es lt vi pl tr ja zh ko th ar ru el fa hr et);
	my %untailored = map { $_ => 1 } qw(und en de fr ru el);
	my @harmless = qw(kn-true kf-upper kf-lower ks-level1 ks-level2 ks-level3);
	my @any = (@harmless, qw(ka-shifted kb-true kc-true kk-true ks-level4 ks-identic kr-digit-latn kr-grek kv-currency
		co-standard co-search co-trad co-phonebk co-pinyin co-stroke co-eor));
	my $locale = sub {
		my ($n, @attributes) = @_;
		my %seen;
		my @some = grep { /^(\w\w)/ && !$seen{$1}++ } some_of($n, @attributes);
		my $language = one_of(@languages);
		# Numbers by value and a tailored order: ICU's comparisons of digits other than ASCII's
		# contradict each other there, so that no order is the right one.
		@some = grep { $_ ne 'kn-true' } @some if !$untailored{$language} || grep { /^co-/ && $_ ne 'co-standard' } @some;
		return $language . (@some ? '-u-' . join('-', sort @some) : '');
	};
	return ("CREATE COLLATION r.any (provider = icu, locale = '" . $locale->(below(4), @any) . "')",
		"CREATE COLLATION r.loose (provider = icu, locale = '" . $locale->(between(1, 2), @harmless)
			. "', deterministic = false)");
}

# Languages of the C library, as fz.libc_* where it has them in UTF-8, and the statements that make them.
sub libc_collations
{
	return map { ("fz.libc_\L$_" => "CREATE COLLATION fz.libc_$_ (provider = libc, locale = '$_.UTF-8')") } qw(en_US de_DE
		fr_FR fr_CA cs_CZ sv_SE ja_JP tr_TR hu_HU);
}

# Those of the collations that a type can be compared under.  Two names are equal if their bytes are,
# and two citexts if those are in lower case, whatever a collation that is not deterministic says of
# their order.
sub collations_for
{
	my ($type, @collations) = @_;
	return $type->{sql} =~ /^(?:name|fz\.citext)$/ ? grep { !/$loose/ } @collations : @collations;
}

# The expression of a column's value in row i: NULLs and edges in a share of the rows, else the
# type's value of the number.
sub value_expression
{
	my ($type, $number, $nulls, $edges, $salt) = @_;
	my $value = $type->{value};
	my @edges = @{ $type->{edges} };
	my $expression = 'CASE';

	$value =~ s/\bN\b/$number/g;
	$expression .= " WHEN fz.h(i, @{[ $salt + 1 ]}) % 100 < $nulls THEN NULL" if $nulls;
	if ($edges && @edges)
	{
		@edges = some_of(between(1, 12), @edges);
		my $array = 'ARRAY[' . join(', ', map { _quoted($_) } @edges) . ']';
		# arrays of arrays are not what they look like
		my $pick = "($array)[1 + fz.h(i, @{[ $salt + 3 ]}) % @{[ scalar @edges ]}]::$type->{base}";
		$expression .= " WHEN fz.h(i, @{[ $salt + 2 ]}) % 100 < $edges THEN $pick";
	}
	return $expression eq 'CASE' ? $value : "$expression ELSE $value END";
}

# Has the type values that are equal and look different?
sub is_inexact
{
	my ($type) = @_;
	return defined $type->{canon};
}

# The expression of a value, the same for all that are equal to it.
sub canonical
{
	my ($type, $expression) = @_;
	my $canonical = $type->{canon} // return $expression;
	$canonical =~ s/\bX\b/$expression/g;
	return $canonical;
}

1;
