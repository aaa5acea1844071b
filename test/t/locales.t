# Databases whose own collation is of each provider, and of other encodings than UTF-8: strings are
# sorted as PostgreSQL sorts them, by gpusort where there is an encoding.
use strict;
use warnings;

use File::Temp qw(tempdir);
use GpuSortNode;
use IPC::Run ();
use Test::More;

# Locales of the C library's, which the machine need not have; PostgreSQL looks for them where we say.
my $locales = tempdir(CLEANUP => 1);
chmod 0755, $locales;
my %has_libc;
for ([ 'en_US', 'UTF-8', 'en_US.utf8' ], [ 'cs_CZ', 'UTF-8', 'cs_CZ.utf8' ], [ 'ja_JP', 'UTF-8', 'ja_JP.utf8' ],
	[ 'en_US', 'ISO-8859-1', 'en_US.iso88591' ], [ 'de_DE', 'ISO-8859-15', 'de_DE.iso885915' ],
	[ 'hu_HU', 'ISO-8859-2', 'hu_HU.iso88592' ], [ 'fr_CA', 'CP1252', 'fr_CA.cp1252' ],
	[ 'ru_RU', 'KOI8-R', 'ru_RU.koi8r' ], [ 'ja_JP', 'EUC-JP', 'ja_JP.eucjp' ])
{
	my ($source, $charmap, $name) = @$_;
	$has_libc{$name} = eval { IPC::Run::run([ 'localedef', '-i', $source, '-f', $charmap, "$locales/$name" ], '>',
		'/dev/null', '2>&1') };
}
IPC::Run::run([ 'sh', '-c', 'cp -r /usr/lib/locale/C.utf8 "$1" 2>/dev/null', 'sh', $locales ]);
$ENV{LOCPATH} = $locales if $has_libc{'en_US.utf8'};

my $node = GpuSortNode->new('main');
$node->init;
$node->start;
$node->wait_service;
my $version = $node->safe_psql('postgres', 'SHOW server_version_num');
my $has_icu = $node->safe_psql('postgres', q{SELECT count(*) FROM pg_collation WHERE collname = 'en-x-icu'}) > 0;

# Words that each of the locales orders differently: case, accents, signs, digits, blanks; LATIN1 has
# all of their characters.  Some are equal but for case, some share a prefix of 40 bytes.
my $words = q{
	CREATE TABLE words AS SELECT i AS id, i * 7919 % 13 AS k, CASE i % 7 WHEN 0 THEN NULL
		WHEN 1 THEN repeat('gleicher Anfang ', 3) ELSE '' END
		|| (ARRAY['a', 'B', 'b', 'A', 'ä', 'Ä', 'ae', 'z', 'Z', 'Straße', 'Strasse', 'co-op', 'coop', 'co op', 'ch', 'cz',
			'x1', 'x10', 'x9', '', 'Ö', 'o', 'ø', '_', ' y'])[1 + i % 25]
		|| CASE WHEN i % 3 = 0 THEN (i % 50)::text ELSE '' END AS t FROM generate_series(1, 2000) i;
	ANALYZE words;
};

# The same with letters that other encodings have.
my %letters = ('ä' => 'ж', 'Ä' => 'Ж', 'ß' => 'ш', 'Ö' => 'Й', 'ø' => 'ё');
my $cyrillic = $words =~ s/(ä|Ä|ß|Ö|ø)/$letters{$1}/gr;
my $hungarian = $words =~ s/ø/ő/gr =~ s/'cz'/'cs'/r =~ s/'co-op'/'ddzs'/r =~ s/'ae'/'dzs'/r;

# Compares, in a database, some orders with PostgreSQL's, and whether gpusort makes them with what is expected.
sub compare
{
	my ($server, $name, $database, $uses, $table) = @_;
	my %used;

	$table //= $words;
	my @orders = ('t, id', 't DESC, id', 't NULLS FIRST, k DESC, id', 't::char(20), id', 't::varchar, k, id',
		'(t || k) DESC, id');
	my $queries = join '', map {
		my $query = "SELECT id, t FROM words ORDER BY $_;\n\\echo next\n";
		"SET gpusort.enable = off; $query SET gpusort.enable = on; SET gpusort.force = on; "
			. "$query EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $query"
	} @orders;
	my @answers = split /^next\n?/m, $server->safe_psql($database, "SET client_encoding = 'UTF8'; $table $queries");

	for my $order (@orders)
	{
		my ($native, $forced, $plan) = splice @answers, 0, 3;

		ok($native ne '' && $native eq $forced, "$name: $order");
		$used{ $plan =~ /Sort Method: .* radix/ ? 1 : 0 }++;
	}
	is(join(' ', keys %used), $uses, "$name: sorted by " . ($uses ? 'gpusort' : 'PostgreSQL'));
	return;
}

sub create_database
{
	my ($name, $options) = @_;
	$node->safe_psql('postgres', "CREATE DATABASE $name TEMPLATE template0 $options");
	return $name;
}

compare($node, 'libc, C', create_database('libc_c', q{ENCODING 'UTF8' LOCALE 'C'}), 1);
compare($node, 'libc, C, LATIN1', create_database('libc_latin1', q{ENCODING 'LATIN1' LOCALE 'C'}), 1);
compare($node, 'libc, C, EUC_JP', create_database('libc_euc_jp', q{ENCODING 'EUC_JP' LOCALE 'C'}), 1, $cyrillic);
compare($node, 'libc, C, SQL_ASCII', create_database('libc_sql_ascii', q{ENCODING 'SQL_ASCII' LOCALE 'C'}), 1);
SKIP:
{
	skip 'no localedef, or no source of en_US', 1 unless $has_libc{'en_US.utf8'};
	my $database = create_database('libc_en', q{ENCODING 'UTF8' LOCALE 'en_US.utf8'});

	compare($node, 'libc, en_US', $database, 1);
	my $plan = $node->safe_psql($database, 'SET gpusort.force = on; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT * '
		. 'FROM words ORDER BY k, t, id');
	like($plan, qr/Sort Method: .* radix/, 'libc, en_US: behind another column');

	# Toasted strings, of which the beginning is looked at: it tells, or has nothing but signs, which do not count.
	$node->safe_psql($database, q{CREATE TABLE long (id int, t text); ALTER TABLE long ALTER t SET STORAGE EXTERNAL;
		INSERT INTO long SELECT i, CASE i % 3 WHEN 0 THEN repeat(chr(233) || 'cs' || chr(97 + i % 5), 900 + i % 9)
			WHEN 1 THEN chr(20000 + i % 40) || repeat(md5((i % 20)::text), 90) ELSE repeat('-', 300) || i % 50
				|| repeat(md5((i % 9)::text), 90) END FROM generate_series(1, 600) i});
	for my $order ('t, id', 't DESC, id', 't COLLATE "en_US" DESC, id')
	{
		my $query = "SELECT id FROM long ORDER BY $order";
		is($node->safe_psql($database, "SET gpusort.force = on; $query"),
			$node->safe_psql($database, "SET gpusort.enable = off; $query"), "libc, en_US, toasted: $order");
	}

	# Strings that differ in signs alone are left to PostgreSQL, as the first rows say, or statistics.
	$node->safe_psql($database, q{CREATE TABLE signs WITH (autovacuum_enabled = off) AS
		SELECT i AS id, translate(i::text, '0123456789', '.,;:!?-_()') AS t FROM generate_series(1, 20000) i});
	my $query = 'SELECT * FROM signs ORDER BY t';
	my $explain = "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $query";
	like($node->safe_psql($database, $explain), qr/Fallback Reason: ties: too many strings are equal/,
		'signs: by the first rows');
	like($node->safe_psql($database, "SET gpusort.force = on; $explain"), qr/Tie Rows: 20000/, 'signs: forced');
	is($node->safe_psql($database, "SET gpusort.force = on; $query"),
		$node->safe_psql($database, "SET gpusort.enable = off; $query"), 'signs: in order');
	unlike($node->safe_psql($database, "ANALYZE signs; $explain"), qr/GpuSort/, 'signs: by statistics');
	$node->safe_psql($database, "SET gpusort.log_decisions = on; $query");
	like($node->log_text,
		qr/not used: the sort alone would take .*; too many strings are equal but for case, accents and punctuation/,
		'signs: the log says why');

	my $english = GpuSortNode->new('english');
	$english->init(extra => [ '--locale=en_US.UTF-8', '-E', 'UTF8' ]);
	$english->start;
	$english->wait_service;
	compare($english, 'a cluster made with en_US', 'postgres', 1);
	$english->stop;
}
for (grep { $has_libc{$_} } qw(cs_CZ.utf8 ja_JP.utf8))
{
	compare($node, "libc, $_", create_database('libc_' . lc substr($_, 0, 2), "ENCODING 'UTF8' LOCALE '$_'"), 1);
}
# Encodings whose characters are bytes, each with every byte that there is
for ([ 'en_US.iso88591', 'LATIN1', $words ], [ 'de_DE.iso885915', 'LATIN9', $words ],
	[ 'hu_HU.iso88592', 'LATIN2', $hungarian ], [ 'fr_CA.cp1252', 'WIN1252', $words ],
	[ 'ru_RU.koi8r', 'KOI8R', $cyrillic ])
{
	my ($locale, $encoding, $table) = @$_;
	next unless $has_libc{$locale};
	my $database = create_database("libc_single_\L$encoding", "ENCODING '$encoding' LOCALE '$locale'");

	compare($node, "libc, $locale", $database, 1, $table);
	$node->safe_psql($database, q{CREATE TABLE bytes AS SELECT i AS id, convert_from(
		set_byte(set_byte(set_byte('\x616161'::bytea, i % 3, 1 + i % 255), (i + 1) % 3, 1 + i * 7919 % 255),
			2, 1 + i * 31 % 255), getdatabaseencoding()) AS t FROM generate_series(1, 5000) i});
	for my $order ('t, id', 't DESC, id', "t || 'x', id")
	{
		my $query = "SELECT id FROM bytes ORDER BY $order";
		is($node->safe_psql($database, "SET gpusort.force = on; $query"),
			$node->safe_psql($database, "SET gpusort.enable = off; $query"), "libc, $locale, all bytes: $order");
	}
}
# Others have characters of several bytes: such sorts stay with PostgreSQL, and the log says so; and so where any locale
# is allowed.
for ([ 'ja_JP.eucjp', 'EUC_JP' ], [ 'en_US.utf8', 'SQL_ASCII' ])
{
	my ($locale, $encoding) = @$_;
	next unless $has_libc{$locale};
	my $database = create_database("libc_other_\L$encoding", "ENCODING '$encoding' LOCALE '$locale'");
	my $log;

	$node->psql($database, q{SET client_min_messages = log; SET gpusort.log_decisions = on; SET gpusort.force = on; }
		. q{EXPLAIN SELECT i::text FROM generate_series(1, 9) i ORDER BY i::text COLLATE "default"}, stderr => \$log);
	like($log, qr{has a libc collation in a database of an encoding that is neither UTF-8 nor of single bytes},
		"libc, $locale: why not");
}
SKIP:
{
	skip 'no ICU', 1 unless $has_icu;
	compare($node, 'ICU, en', create_database('icu_en',
		q{ENCODING 'UTF8' LOCALE 'C' LOCALE_PROVIDER icu ICU_LOCALE 'en-US'}), 1);
	compare($node, 'ICU, Czech', create_database('icu_cs',
		q{ENCODING 'UTF8' LOCALE 'C' LOCALE_PROVIDER icu ICU_LOCALE 'cs'}), 1);
	compare($node, 'ICU, numeric and shifted',
		create_database('icu_kn', q{ENCODING 'UTF8' LOCALE 'C' LOCALE_PROVIDER icu ICU_LOCALE 'de-u-kn-true-ka-shifted'}), 1);
	compare($node, 'ICU, LATIN1', create_database('icu_latin1',
		q{ENCODING 'LATIN1' LOCALE 'C' LOCALE_PROVIDER icu ICU_LOCALE 'de-u-co-phonebk'}), 1);
	compare($node, 'ICU, WIN1252', create_database('icu_win',
		q{ENCODING 'WIN1252' LOCALE 'C' LOCALE_PROVIDER icu ICU_LOCALE 'sv'}), 1);

	# characters that another encoding stores in two or three bytes
	my $database = create_database('icu_euc', q{ENCODING 'EUC_JP' LOCALE 'C' LOCALE_PROVIDER icu ICU_LOCALE 'ja'});
	my $query = q{SELECT i, convert_from(decode(to_hex((ARRAY[164, 165, 176])[1 + i % 3] * 256 + 161 + i % 80), 'hex'), }
		. q{'EUC_JP') || i % 9 || chr(97 + i % 26) AS t FROM generate_series(1, 1500) i ORDER BY t, i};
	is($node->safe_psql($database, "SET client_encoding = 'UTF8'; SET gpusort.force = on; $query"),
	   $node->safe_psql($database, "SET client_encoding = 'UTF8'; SET gpusort.enable = off; $query"), 'ICU, EUC_JP');

	if ($version >= 160000)
	{
		compare($node, 'ICU with rules', create_database('icu_rules',
			q{ENCODING 'UTF8' LOCALE 'C' LOCALE_PROVIDER icu ICU_LOCALE 'und' ICU_RULES '&z < a &c < ch &B = ö'}), 1);
	}

	my $icu = GpuSortNode->new('icu');
	$icu->init(extra => [ '--locale-provider=icu', '--icu-locale=en', '--locale=C', '-E', 'UTF8' ]);
	$icu->start;
	$icu->wait_service;
	compare($icu, 'a cluster made with ICU', 'postgres', 1);
}
if ($version >= 170000)
{
	compare($node, 'builtin, C', create_database('builtin_c',
		q{ENCODING 'UTF8' LOCALE 'C' LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C'}), 1);
	compare($node, 'builtin, C.UTF-8', create_database('builtin_utf8',
		q{ENCODING 'UTF8' LOCALE 'C' LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8'}), 1);
}
if ($version >= 180000)
{
	compare($node, 'builtin, PG_UNICODE_FAST',
		create_database('builtin_fast',
			q{ENCODING 'UTF8' LOCALE 'C' LOCALE_PROVIDER builtin BUILTIN_LOCALE 'PG_UNICODE_FAST'}), 1);
}

done_testing;
