# Where service and engine are found when the module is not where PostgreSQL has its modules: beside it,
# beside what a link to it leads to, in directories that nobody may write to, and where PostgreSQL 18
# finds extensions by extension_control_path.
use strict;
use warnings;

use File::Basename qw(dirname);
use File::Path qw(make_path);
use GpuSortNode;
use PostgreSQL::Test::Utils qw(slurp_file);
use Test::More;

my $pg_config = $ENV{PG_CONFIG} || 'pg_config';
chomp(my ($pkglibdir, $sharedir) = `$pg_config --pkglibdir --sharedir`);

# The arguments of a service, by the option that they stand behind.
sub service_arguments
{
	my ($service) = @_;
	my ($program, @options) = split /\0/, slurp_file("/proc/$service/cmdline");

	return (program => $program, @options);
}

# An engine that is no library has the service say so, and serve with the host engine.
sub pretend_engine
{
	my ($directory) = @_;

	return if -e "$directory/gpusort_cuda.so";
	open my $file, '>', "$directory/gpusort_cuda.so" or die $!;
	close $file;
	return;
}

# a link in a directory that has nothing else leads to the module
my $node = GpuSortNode->new('link');
$node->init;
my $directory = $node->own_module;
pretend_engine($directory);
my $links = $node->basedir . '/links';
make_path($links);
symlink '../module/gpusort.so', "$links/gpusort.so" or die $!;
$node->append_conf('postgresql.conf', "shared_preload_libraries = '$links/gpusort'\n");
chmod 0555, $directory, $links;
$node->start;
my $service = $node->wait_service;
is(readlink "/proc/$service/exe", "$directory/gpusortd",
	'a module that is a link: the service beside what it leads to');
my %arguments = service_arguments($service);
is($arguments{'--cuda-library'}, "$directory/gpusort_cuda.so", 'and the cuda engine there');
is($node->method, 'radix', 'it sorts, with directories that cannot be written');

# a link to the service beside the link to the module goes first
$node->stop;
chmod 0755, $links;
symlink "$directory/gpusortd", "$links/gpusortd" or die $!;
$node->start;
%arguments = service_arguments($node->wait_service);
is($arguments{program}, "$links/gpusortd", 'what is beside the link goes first');
is($node->method, 'radix', 'and sorts');
$node->stop;
chmod 0755, $directory;

# by its name alone, from a directory of dynamic_library_path
$node = GpuSortNode->new('path');
$node->init;
$directory = $node->own_module;
$node->append_conf('postgresql.conf',
	"shared_preload_libraries = 'gpusort'\ndynamic_library_path = '$directory:\$libdir'\n");
$node->start;
is(readlink '/proc/' . $node->wait_service . '/exe', "$directory/gpusortd",
	'dynamic_library_path: the service beside the module');
is($node->method, 'radix', 'it sorts');
$node->stop;

# a module alone: what is installed serves it
unlink "$directory/gpusortd", "$directory/gpusort_cuda.so";
$node->start;
is(readlink '/proc/' . $node->wait_service . '/exe', "$pkglibdir/gpusortd",
	'without one, the service where PostgreSQL has its modules');
my $version = $node->safe_psql('postgres', 'SHOW server_version_num');
SKIP:
{
	skip 'the engine for GPUs is installed', 1 if -e "$pkglibdir/gpusort_cuda.so";
	like($node->log_text, qr/no GPU engine.* is not installed\n.*HINT:.*install the package gpusort-cuda/,
		'the log tells which package has the engine for GPUs');
}
$node->stop;

SKIP:
{
	skip 'extension_control_path came with PostgreSQL 18', 6 if $version < 180000;

	$node = GpuSortNode->new('extension');
	$node->init;
	my $module = $node->own_module;
	my $root = $node->basedir . '/image';
	make_path("$root/share/extension");
	rename $module, "$root/lib" or die $!;
	for my $file (glob "$sharedir/extension/gpusort*")
	{
		my $text = slurp_file($file);
		$text =~ s/^comment = .*/comment = 'of an image'/m if $file =~ /\.control$/;
		my ($name) = $file =~ m{([^/]*)$};
		open my $copy, '>', "$root/share/extension/$name" or die $!;
		print $copy $text;
		close $copy;
	}
	chmod 0555, "$root/lib", "$root/share/extension", "$root/share", $root;
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'gpusort'\n"
		. "extension_control_path = '$root/share:\$system'\ndynamic_library_path = '$root/lib:\$libdir'\n");
	$node->start;
	is(readlink '/proc/' . $node->wait_service . '/exe', "$root/lib/gpusortd",
		'extension_control_path: the service beside the module');
	is($node->method, 'radix', 'it sorts');
	my $session = $node->session;
	$session->run('CREATE EXTENSION gpusort');
	is($session->run(q{SELECT obj_description(oid, 'pg_extension') FROM pg_extension WHERE extname = 'gpusort'}),
		'of an image', 'the extension is that of the image');
	is($session->run('SELECT gpusort_version() = extversion FROM pg_extension WHERE extname = \'gpusort\''), 't',
		'its functions work');
	my $maps = slurp_file('/proc/' . $session->run('SELECT pg_backend_pid()') . '/maps');
	like($maps, qr{\Q$root\E/lib/gpusort\.so}, 'and are of its module');
	unlike($maps, qr{\Q$pkglibdir\E/gpusort\.so}, 'and of no other');
	$session->close;
	$node->stop;
	chmod 0755, "$root/lib", "$root/share/extension", "$root/share", $root;
}

# documents lead to what is installed
chomp(my $docdir = `$pg_config --docdir`);
my $documents = "$docdir/extension/gpusort";
SKIP:
{
	skip 'no documents are installed', 2 unless -e "$documents/README.md";
	my @missing;
	for my $document ("$documents/README.md", glob "$documents/doc/*.md")
	{
		push @missing, grep { !-e dirname($document) . "/$_" } slurp_file($document) =~ /\]\(([^)#:]+)[)#]/g;
	}
	is("@missing", '', 'links of the installed documents lead to what is there');
	my @programs = qw(costs workload workloads);
	is(join(' ', map { `$documents/bench/$_ -h` =~ /^(\w+) - / } @programs), "@programs",
		'benchmarks are there with their parts, and run');
}

done_testing;
