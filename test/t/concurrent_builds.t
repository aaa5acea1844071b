# Btrees built concurrently, while others insert, update, move and delete rows: each that is visible is in them, once.
use strict;
use warnings;

use GpuSortNode;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = GpuSortNode->new('main');
$node->init(
	conf => [ 'gpusort.index_builds = on', 'gpusort.force = on', 'gpusort.log_decisions = on', 'gpusort.min_rows = 0',
		'max_parallel_workers = 8', 'max_worker_processes = 12', 'max_parallel_maintenance_workers = 2',
		'min_parallel_table_scan_size = 0', 'fsync = off', 'lock_timeout = 150s', 'autovacuum = on' ]);
$node->start;
$node->wait_service;
plan skip_all => 'no amcheck' unless eval { $node->safe_psql('postgres', 'CREATE EXTENSION amcheck'); 1 };
my $check = $node->check_index;
$node->safe_psql('postgres', q{
	CREATE TABLE d (i int, k int, m text COLLATE "C", pad text) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0);
	INSERT INTO d SELECT i, i, md5(i::text), repeat('x', i % 60) FROM generate_series(1, 20000) i;
	CREATE INDEX d_i ON d (i);
});

# A client that has the lock builds and checks indexes, the others write.
my $build = "SELECT pg_try_advisory_lock(42)::int AS mine \\gset\n\\if :mine\n";
for my $case ([ 'plain', 'INDEX CONCURRENTLY %s ON d (m, k)' ], [ 'single', 'UNIQUE INDEX CONCURRENTLY %s ON d (k)' ],
	[ 'partial', 'INDEX CONCURRENTLY %s ON d (upper(m) COLLATE "C") WHERE k % 2 = 0' ])
{
	my ($name, $sql) = @$case;
	my $make = $sql =~ s/%s/$name/r;

	$build .= "CREATE $make;\nSELECT " . sprintf($check, "'$name'") . ";\n"
		. "REINDEX INDEX CONCURRENTLY $name;\nSELECT " . sprintf($check, "'$name'") . ";\nDROP INDEX $name;\n";
}
$build .= "SELECT pg_advisory_unlock(42);\n\\endif\n";
# Rows move, and go and come; all values of k are different at all times.
my $write = q{\set i random(1, 20000)
UPDATE d SET k = -k, m = md5(m), pad = repeat('y', :i % 200) WHERE i = :i;
\set i random(1, 20000)
BEGIN;
DELETE FROM d WHERE i = :i;
INSERT INTO d SELECT :i, :i, md5(:i::text), '' WHERE pg_try_advisory_xact_lock(:i)
	AND NOT EXISTS (SELECT FROM d WHERE i = :i);
COMMIT;
};
my @scripts;
for my $script ([ build => $build, 1 ], [ write => $write, 9 ])
{
	my ($name, $text, $weight) = @$script;
	my $file = $node->basedir . "/$name.sql";

	append_to_file($file, $text);
	push @scripts, '-f', "$file\@$weight";
}
command_checks_all(
	[ 'pgbench', '-n', '-c', 4, '-j', 2, '-t', 150, @scripts, '-h', $node->host, '-p', $node->port, 'postgres' ],
	0, [qr/actually processed: 600/], [qr/^(?!.*(?:ERROR|FATAL))/s], 'builds beside writers');
my $log = $node->log_text;
my $built = () = $log =~ /gpusort: building index "(?:plain|single|partial)(?:_ccnew)?"/g;
cmp_ok($built, '>', 5, 'gpusort builds them');
unlike($log, qr/gpusort: index "[^"]*" is left to PostgreSQL/, 'all of them');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_index WHERE NOT indisvalid}), 0, 'none is invalid');

# What cannot be: the error is PostgreSQL's, and the index that it leaves invalid is replaced by REINDEX
$node->safe_psql('postgres', q{
	CREATE TABLE twice AS SELECT i FROM generate_series(1, 20000) i;
	INSERT INTO twice VALUES (777);
});
my @errors;
for my $setting ('off', 'on')
{
	my $error;

	$node->psql('postgres',
		"SET gpusort.index_builds = $setting; CREATE UNIQUE INDEX CONCURRENTLY twice_$setting ON twice (i)",
		stderr => \$error);
	push @errors, $error =~ s/^psql:<stdin>:\d+: |^(?:CONTEXT|LOG):.*\n?|"twice_\w+"//gmr =~ s/\n+\z//r;
}
like($errors[0], qr/could not create unique index/, 'duplicates are an error');
is($errors[1], $errors[0], 'it is the same error');
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_index WHERE NOT indisvalid'), 2, 'both indexes are invalid');
is($node->safe_psql('postgres', 'DROP INDEX twice_off; DELETE FROM twice WHERE i = 777; '
	. 'REINDEX INDEX CONCURRENTLY twice_on; SELECT ' . sprintf($check, q{'twice_on'})
	. '; SELECT count(*) FROM pg_index WHERE NOT indisvalid'), "\n0", 'then one can be mended');
$node->stop;

done_testing();
