# FuzzRun - rounds of the fuzzer: a schema, queries on it, each with and without gpusort.
#
#   my $run = FuzzRun->new(seed => 1, seconds => 30, report => sub { print @_ });
#   $run->run;		# true if nothing was found
#   $run->{queries}, $run->{runs}, $run->{sorts}, $run->{failures}
#   $run->{nodes}	# where sorts stood in plans, a FuzzNodes
#
# Round n of seed s is round 0 of seed s + n: that seed alone reproduces it.  What
# is done does not depend on time, but for where it ends.
#
# The oracle is PostgreSQL without gpusort in the same session.  A failure is: other
# rows, another order of the keys, a sort that the service could not do for a fault of its own, another
# error, a warning, no answer in time, a session or
# server that dies, what is left over in the session after a round (memory contexts,
# connections, temporary files), and a line of the server's log that tells of either.
package FuzzRun;

use strict;
use warnings;
no warnings 'nonchar';

use Carp;
use File::Path qw(make_path);
use Exporter qw(import);
use File::Temp qw(tempdir);
use FuzzAnswers;
use FuzzMinimise;
use FuzzNodes;
use FuzzParts;
use FuzzQuery;
use FuzzRandom;
use FuzzSchema;
use FuzzServer;
use FuzzSession;
use FuzzSettings;
use FuzzSql;
use FuzzTables;
use FuzzTypes;
use GpuSortNode;
use GpuSortWire;
use Time::HiRes qw(sleep time);

our @EXPORT = qw(bad_lines);

my $bad_log = join '|', 'PANIC', 'TRAP:', 'terminating any other active', 'was terminated by signal', 'leak',
	'was not closed', 'still referenced', 'still open', qw(XX000 XX001 XX002), 'unexpected', 'could not find',
	'problem in alloc set', 'detected write past';

# PostgreSQL's sort takes over, but not because of what was asked for.
my $waited = qr/after a wait of \d+ ms(?:, ten times what PostgreSQL's own sort takes)?: /;
my $asked_for = qr/(?:$waited)?the sort needs .* MB of memory/;
my $bad_reason = qr/a chunk|the host engine|the sort service was sent|unexpected|.*(?:CUDA|cuda|device)/;
my $bad_fallback = qr/falling back to tuplesort: (?!$asked_for)(?:$bad_reason)/;

# Options: seed; seconds or rounds; queries per round; failures: how many to stop after; report:
# called with text; save: a directory for reproductions; minimise: seconds for each failure; server:
# true to use the running server that the environment names, and not make one; name: what the names
# of databases made there begin with; tolerate_loss: true where somebody kills the service and cancels
# and terminates sessions meanwhile, so that what a session is told of it is no failure, but counted;
# wide: the percentage of rounds that FuzzSql makes the queries of (50); tlp: of these queries that of those whose rows
# are known from others (8);
# run_rows: not 0 to have all sorts done in runs, the first of so many rows (GPUSORT_RUN_ROWS); node: a server of the
# caller's.
sub new
{
	my ($class, %option) = @_;
	my $self = bless { seed => 1, per_round => 40, max_failures => 1, max_rows => 120000, minimise => 20,
		wide => 50, tlp => 8,
		report => sub { print @_ }, %option,
		queries => 0, runs => 0, sorts => 0, sorted_runs => 0, indexes => 0, formed => 0, fallbacks => {}, failures => 0,
			rounds_done => 0, skipped => 0, varying => 0, kinds => {}, errors => {}, disturbances => {} }, $class;

	$self->{nodes} = FuzzNodes->new;
	$self->{scratch} = tempdir('gpusort-fuzz-XXXXXXXX', TMPDIR => 1, CLEANUP => 1);
	if ($self->{node})
	{
		$self->{node}->wait_service;
	}
	elsif ($self->{server})
	{
		# the others' work takes its time
		$FuzzSession::statement_seconds = 50;
		$self->{node} = FuzzServer->new;
	}
	else
	{
		$self->{node} = GpuSortNode->new("server$$" . ($self->{run_rows} ? 'r' : ''));
		$self->{node}->init(conf => [ 'max_worker_processes = 16', 'max_parallel_workers = 8', 'log_min_messages = warning',
			'log_error_verbosity = verbose', 'autovacuum = off', 'jit = off' ]);
		local $ENV{GPUSORT_RUN_ROWS} = $self->{run_rows} // 0;
		$self->{node}->start;
		$self->{node}->wait_service;
	}
	# a role of its own: others of the same server drop theirs
	$FuzzTables::reader = ($self->{name} // 'fuzz') . '_reader';
	$self->{node}->psql('postgres', "CREATE ROLE $FuzzTables::reader", stderr => \my $there);
	$self->_look_round;
	return $self;
}

# One for each kind of default collation.
my %database_options = (
	c => q{LOCALE 'C'},
	utf8 => q{LOCALE 'C.UTF-8'},
	icu => q{LOCALE_PROVIDER icu ICU_LOCALE 'en' LOCALE 'C'});

# What this PostgreSQL has.
sub _look_round
{
	my ($self) = @_;
	my $node = $self->{node};

	# C.UTF-8 under one of its names
	my @more = ($node->safe_psql('template1',
		q{SELECT format('%I', collname) FROM pg_collation WHERE collprovider = 'c' AND collencoding IN (-1, 6) }
			. q{AND collcollate ~* '^C\.utf-?8$' ORDER BY 1 LIMIT 1}));
	# languages of the C library, which the machine need not have
	my %libc = libc_collations();
	$self->{libc} = { map { $_ => $libc{$_} } grep { $node->psql('postgres',
		"BEGIN; CREATE SCHEMA fz; $libc{$_}; ROLLBACK", stderr => \my $refused) == 0 } sort keys %libc };
	push @more, sort keys %{ $self->{libc} };
	$database_options{libc} = q{LOCALE 'en_US.UTF-8'} if $self->{libc}{'fz.libc_en_us'};
	$database_options{libc_czech} = q{LOCALE 'cs_CZ.UTF-8'} if $self->{libc}{'fz.libc_cs_cz'};
	# those of PostgreSQL's own provider, from 17 on
	push @more, split /\n/, $node->safe_psql('template1',
		q{SELECT format('%I', collname) FROM pg_collation WHERE collprovider = 'b' AND collencoding IN (-1, 6) ORDER BY 1});
	$self->{collations} = [ ('"C"') x 3, '"POSIX"', ('"default"') x 2, ('"en-x-icu"') x 2, '"sv-x-icu"',
		map({ "fz.$_" } qw(ci base digits upper shifted backwards phonebook)), ('r.any') x 4, ('r.loose') x 2,
		grep { $_ ne '' } @more ];
	$self->{foreign} = $node->safe_psql('postgres',
		q{SELECT count(*) FROM pg_available_extensions WHERE name = 'file_fdw'});
	$database_options{builtin} = q{LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8' LOCALE 'C'}
		if $node->safe_psql('postgres', 'SHOW server_version_num') >= 170000;
	$self->{checks_indexes} = $node->safe_psql('postgres',
		q{SELECT count(*) FROM pg_available_extensions WHERE name = 'amcheck'});
	# the name that this had up to 15, or the later one
	$self->{force_parallel} = $node->safe_psql('postgres',
		q{SELECT name FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query')});
	# that of a server's own configuration need not be in the backend's path
	$self->{explains} = $node->psql('postgres', q{LOAD 'auto_explain'}) == 0;
	return;
}

# A database of a kind of default collation, made when it is first asked for.
sub _database
{
	my ($self, $kind) = @_;
	my $node = $self->{node};
	my $name = ($self->{name} // 'fuzz') . "_$kind";

	return $name if $self->{databases}{$name}++;
	$node->safe_psql('postgres', "DROP DATABASE IF EXISTS $name") if $self->{server};
	$node->safe_psql('postgres', "CREATE DATABASE $name TEMPLATE template0 ENCODING 'UTF8' $database_options{$kind}");
	$node->safe_psql($name, join ';', 'CREATE EXTENSION gpusort', fixtures(),
		map { $self->{libc}{$_} } sort keys %{ $self->{libc} });
	$node->safe_psql($name, 'CREATE EXTENSION amcheck') if $self->{checks_indexes};
	$node->safe_psql($name, 'CREATE EXTENSION file_fdw; CREATE SERVER files FOREIGN DATA WRAPPER file_fdw')
		if $self->{foreign};
	return $name;
}

# Leaves a server that is not the fuzzer's own as it was.
sub clean
{
	my ($self) = @_;
	return unless $self->{server};
	for my $name (sort keys %{ $self->{databases} })
	{
		$self->{node}->psql('postgres', "DROP DATABASE IF EXISTS $name");
		$self->{node}->psql('postgres',
			qq{COPY (SELECT current_setting('data_directory')) TO PROGRAM 'read -r d && rm -f "\$d/$name.f1"'})
			if $self->{foreign};
	}
	$self->{node}->psql('postgres', "DROP ROLE IF EXISTS $FuzzTables::reader");
	return;
}

# --- the server -----------------------------------------------------------------------------------

# The service's memory: small in some rounds, so that sorts are refused or fall back.
sub _set_memory
{
	my ($self) = @_;
	return if $self->{server};
	my $want = weighted(80 => '0 64', 8 => '16 64', 12 => '0 16');
	return if $want eq ($self->{memory} // '0 64');

	my ($host, $staging) = split / /, $want;
	$self->{node}->safe_psql('postgres', "ALTER SYSTEM SET gpusort.host_memory = '${host}MB'");
	# a device's engine needs more than that for itself
	$self->{node}->safe_psql('postgres', "ALTER SYSTEM SET gpusort.device_memory = '" . $host * 4 . "MB'");
	$self->{node}->safe_psql('postgres', "ALTER SYSTEM SET gpusort.staging_memory = '${staging}MB'");
	my ($old) = $self->{node}->services;
	$self->{node}->reload;
	# the service that is to be is another process
	wait_until(sub { my ($new) = $self->{node}->services; defined $new && (!defined $old || $new != $old) }, 10);
	wait_until(sub { $self->{node}->method ne 'native' }, 10);
	$self->{memory} = $want;
	return;
}

# A session in the midst of sorts, which hold chunks of the staging pool.
sub _hog
{
	my ($self, $database, $sorts) = @_;
	my $hog = FuzzSession->new($self->{node}, $database, $self->{scratch}, '-hog');

	$hog->run(join ";\n", 'SET gpusort.force = on', 'BEGIN',
		map { ("DECLARE c$_ CURSOR FOR SELECT g FROM generate_series(1, 1000000) g ORDER BY g DESC",
			"FETCH 1 FROM c$_") } 1 .. $sorts);
	return $hog;
}

# --- trying ---------------------------------------------------------------------------------------

sub _prologue
{
	my ($self, $enable, @settings) = @_;
	return join ";\n", 'RESET ALL', 'SET search_path = r, fz, public', 'SET client_min_messages = warning',
		sprintf("SET statement_timeout = '%ds'", $enable eq 'on' ? $FuzzSession::statement_seconds
		: $FuzzSession::native_seconds), (map { "SET $_" } @settings),
		$enable eq 'on' ? ('SET client_min_messages = log', 'SET gpusort.log_decisions = on',
		$self->{explains} ? FuzzNodes::settings() : ()) : (), "SET gpusort.enable = $enable;\n";
}

# Asks a query by the protocol, of another session of the same database, which stays for the round.  Returns what
# FuzzSession's run does, all bytes of the answer in the place of psql's output.
sub _ask_wire
{
	my ($self, $query, $prologue) = @_;
	my $wire = $self->{wire};
	my $answer;

	if (!$wire || $wire->{database} ne $self->{database} || $wire->{gone})
	{
		my ($path, $user) = ($self->{node}->host . '/.s.PGSQL.' . $self->{node}->port, $ENV{PGUSER} // 'postgres');

		$wire = $self->{wire} = { database => $self->{database},
			client => GpuSortWire->new($path, database => $self->{database}, user => $user) };
	}
	$wire->{client}->simple($prologue . 'SET client_min_messages = warning; SET gpusort.log_decisions = off');
	$answer = $query->{wire}{simple} ? $wire->{client}->simple($query->{sql})
		: $wire->{client}->extended($query->{sql}, %{ $query->{wire} });
	$wire->{gone} = $answer->{gone};
	return $answer->{gone} ? undef : $answer->{bytes}, defined $answer->{error} ? 'ERROR:  ' . $answer->{error} : ();
}

# Asks a query under such settings.  Returns what FuzzSession's run does.
sub _ask
{
	my ($self, $session, $query, $enable, @settings) = @_;
	my $prologue = $self->_prologue($enable, @settings);
	# GpuSortWire knows sockets only
	my $by_wire = $query->{wire} && $self->{node}->host =~ m{^/};

	return $by_wire ? $self->_ask_wire($query, $prologue) : $session->run($prologue . $query->{sql});
}

# True if PostgreSQL, too, answers a query of FuzzSql in several ways: then it owes none of them.
sub _varies
{
	my ($self, $session, $query, $native, $states) = @_;
	my @native_settings = ([], [ 'max_parallel_workers_per_gather = 0', 'enable_hashagg = off', 'enable_hashjoin = off' ],
		[ 'max_parallel_workers_per_gather = 0', 'enable_sort = off', 'enable_mergejoin = off', "work_mem = '64MB'" ],
		[ 'max_parallel_workers_per_gather = 3', 'parallel_setup_cost = 0', 'parallel_tuple_cost = 0',
			'min_parallel_table_scan_size = 0', 'enable_hashagg = off' ]);

	return 0 unless $query->{wide};
	for my $settings (@native_settings)
	{
		my ($again, @messages) = $self->_ask($session, $query, 'off', @$settings);
		return 0 unless defined $again;
		my $now = sqlstates(@messages);
		next if $now =~ /57014/;
		if ($now ne $states || $again ne $native && $query->{mode} ne 'errors'
			&& compare_answers($session, $query, $native, $again))
		{
			$self->{varying}++;
			$self->{report}->("-- varies natively, with @$settings:\n$query->{sql};\n") if $self->{verbose};
			return 1;
		}
	}
	return 0;
}

# Compares the rows of a query with those of its parts (FuzzPartitions), both with gpusort.
sub _try_parts
{
	my ($self, $session, $query, @variants) = @_;
	my $run = sub {
		my ($enable, $settings, $sql) = @_;
		my ($rows, @messages) = $session->run($self->_prologue($enable, @$settings) . $sql);
		$self->{nodes}->add(@messages) if $self->{explains} && $enable eq 'on';
		return ($rows, sqlstates(@messages), @messages);
	};
	my $differ = sub {
		my ($enable) = @_;
		my ($whole, $states, @messages) = $run->($enable, $variants[0], $query->{sql});
		return "session: backend $session->{backend}\n" . join "\n", without_plans(@messages) unless defined $whole;
		my ($parts, $states_of_parts, @more) = $run->($enable, $variants[-1], $query->{parts});
		return "session: backend $session->{backend}, of parts\n" . join "\n", without_plans(@more) unless defined $parts;
		if ("$states $states_of_parts" =~ /57014/)
		{
			$self->{skipped}++;
			return;
		}
		return "error: $states of the whole, $states_of_parts of parts\n" . join "\n", without_plans(@messages, @more)
			if $states ne $states_of_parts || $states =~ /XX/;
		return if $whole eq $parts;
		$session->run($self->_prologue('off'));
		my $wrong = compare_answers($session, $query, $whole, $parts);
		return $wrong ? "parts: the whole is not its parts: $wrong\n-- parts\n$query->{parts};" : undef;
	};

	$self->{runs} += 2;
	my $wrong = $differ->('on');
	return unless $wrong;
	if ($wrong !~ /^session:/ && $differ->('off'))
	{
		$self->{varying}++;
		$self->{report}->("-- parts differ natively:\n$query->{sql};\n$query->{parts};\n") if $self->{verbose};
		return;
	}
	return ($wrong, $variants[0]);
}

# Notes the internal errors that PostgreSQL alone gives.
sub _note_internal
{
	my ($self, @messages) = @_;
	$self->{internal}{$_} = 1 for map { /ERROR:  (XX\w{3}: .+)/ ? $1 : () } @messages;
	return;
}

# What try does, in a session of that database.
sub try_in
{
	my ($self, $database, $query, @variants) = @_;

	$self->{database} = $database;
	return $self->_try(FuzzSession->new($self->{node}, $database, $self->{scratch}), $query, @variants);
}

# Runs a query without gpusort, and then with it under each set of settings.  Returns nothing, or
# what is wrong ("kind: ...") and the settings.
sub _try
{
	my ($self, $session, $query, @variants) = @_;
	my ($native, @native_messages, $native_states);

	return $self->_try_parts($session, $query, @variants) if $query->{parts};

	for my $settings (@variants)
	{
		if (!defined $native)
		{
			($native, @native_messages) = $self->_ask($session, $query, 'off', @$settings);
			$native_states = sqlstates(@native_messages);
			return ("native: backend $session->{backend}\n" . join("\n", @native_messages), $settings) unless defined $native;
			$self->{errors}{$_}++ for split / /, $native_states;
			$self->_note_internal(@native_messages);
			if ($native_states =~ /57014/)
			{
				$self->{skipped}++;
				return;
			}
		}
		my ($ours, @messages) = $self->_ask($session, $query, 'on', @$settings);
		my $states = sqlstates(@messages);
		my @slow_plan;

		$self->{runs}++;
		$self->{nodes}->add(@messages) if $self->{explains};
		my ($fallback) = grep { /$bad_fallback/ } @messages;
		return ("fallback: $fallback", $settings) if defined $fallback;
		if ($states =~ /57014/)
		{
			# slow is a failure where PostgreSQL is not, under these very settings
			my $start = time;
			$self->_ask($session, $query, 'off', @$settings);
			# thousands of sorts that the service refuses, one for each row of another, are too slow, too
			if (time - $start > $FuzzSession::native_seconds / 2 || 1000 < grep { /falling back to tuplesort/ } @messages)
			{
				$self->{skipped}++;
				next;
			}
			# that may have been others' work, which many small sorts feel most;
			# a service that does not answer is waited for, but not twice
			if (!$self->{server} || $self->{tolerate_loss})
			{
				local $FuzzSession::statement_seconds = 6 * $FuzzSession::statement_seconds;
				# each of several statements may take so long
				local $FuzzSession::answer_seconds = 10 * $FuzzSession::statement_seconds;
				($ours, @messages) = $self->_ask($session, $query, 'on', @$settings);
				$states = sqlstates(@messages);
			}
			if ($states =~ /57014/)
			{
				# a plan that has to have what the settings forbid is chosen by how much of that it has, not by what it takes
				my ($plan) = $session->run($self->_prologue('on', @$settings) . 'EXPLAIN ' . ($query->{select} // $query->{sql}));
				$plan //= '';
				my $forbidden = $plan =~ /\.\.[0-9]{11,}\./;
				# rows that are read again are merged again, and of runs as small as these that takes longer than reading them;
				# and who forces sorts, or has them cost nothing, gets one for each row of another plan
				my $forced = grep { /^gpusort\.(?:force = on|setup_cost = 0)/ } @$settings;
				my $reread = ($self->{run_rows} || $forced) && $plan =~ /Nested Loop|SubPlan/ && $plan =~ /GpuSort/;
				if ($forbidden || $reread)
				{
					$self->{skipped}++;
					next;
				}
				@slow_plan = ('-- planned with gpusort as', split /\n/, $plan =~ tr/\0/\n/r);
			}
		}
		return ("session: backend $session->{backend}\n" . join("\n", without_plans(@messages)), $settings)
			unless defined $ours;
		if ($states =~ /XX/)
		{
			# PostgreSQL 19 cannot sort for some set operations itself: then under these very settings
			my (undef, @again) = $self->_ask($session, $query, 'off', @$settings);
			$self->_note_internal(@again);
			next if sqlstates(@again) eq $states;
		}
		next if $states ne $native_states && $self->_varies($session, $query, $native, $native_states);
		return ("error: $native_states natively, $states with gpusort\n"
			. join("\n", '-- native', @native_messages, '-- gpusort', without_plans(@messages), @slow_plan), $settings)
			if $states ne $native_states;
		# how many rows have been sent before an error is the plan's
		next if $ours eq $native || $query->{mode} eq 'errors' || ($states ne '' && $query->{name} =~ /copy|protocol/);

		$session->run($self->_prologue('off')) if $query->{mode} ne 'exact';
		my $wrong = compare_answers($session, $query, $native, $ours);
		return ($wrong, $settings) if $wrong && !$self->_varies($session, $query, $native, $native_states);
	}
	return;
}

# --- what is left over ----------------------------------------------------------------------------

sub _leftovers
{
	my ($self, $session, $descriptors) = @_;
	my @found;
	# the reasons of the last plans are kept while they are logged
	my ($contexts) = $session->run($self->_prologue('off')
		. q{SELECT string_agg(DISTINCT name, ', ') FROM pg_backend_memory_contexts
			WHERE name LIKE 'gpusort%' AND name <> 'gpusort decisions'});
	push @found, "memory contexts: $contexts" if ($contexts // '\N') !~ /^\\N/;
	push @found, "connections: $descriptors at first, " . $session->descriptors . ' in the end'
		if $session->descriptors > $descriptors + 1;
	my $files;
	my ($of_files, $of_jobs) = $self->{server} ? (q{WHERE name LIKE 'pgsql\_tmp' || pg_backend_pid() || '.%'},
		'WHERE pid = pg_backend_pid()') : ('', '');
	# parallel workers end a little later
	for (1 .. 20)
	{
		($files) = $session->run("SELECT (SELECT string_agg(name, ', ') FROM pg_ls_tmpdir() $of_files), "
			. "(SELECT string_agg(pid::text, ', ') FROM gpusort_jobs $of_jobs)");
		last if ($files // '') =~ /^\\N\0\\N/;
		sleep 0.2;
	}
	push @found, "temporary files and running sorts: $files" if ($files // '') !~ /^\\N\0\\N/;
	return @found;
}

# Where a server's log ends, and the lines of it, from there on where one looked last, that tell of a
# crash, a leak or an internal error.
sub bad_lines
{
	my ($log, $from) = @_;
	open my $file, '<', $log or croak "$log: $!";
	seek $file, $from, 0;
	# statements are the fuzzer's own
	my @lines = <$file>;
	return (tell $file, grep { /$bad_log/ && !/ (?:STATEMENT|CONTEXT|DETAIL|QUERY):/
		&& /(?:ERROR|WARNING|FATAL|PANIC|LOG|TRAP)/ } @lines);
}

# Those that have come into the log of the fuzzer's own server; others' lines are in one that is shared.
sub _new_log
{
	my ($self) = @_;
	return if $self->{server};
	($self->{log_read}, my @lines) = bad_lines($self->{node}->logfile, $self->{log_read} // 0);
	# internal errors that PostgreSQL alone gives, too; what gpusort adds to them is told by the query
	my @native = keys %{ $self->{internal} // {} };
	return grep { my $line = $_; !grep { index($line, $_) >= 0 } @native } @lines;
}

# --- telling --------------------------------------------------------------------------------------

sub _setup
{
	my ($self, $session, $schema) = @_;
	return $session->run(join ";\n", $self->_prologue('off') . 'DISCARD TEMP', 'DROP SCHEMA IF EXISTS r CASCADE',
		'CREATE SCHEMA r', @$schema);
}

# What amcheck, where it is there, has to say of the round's indexes.
sub _bad_indexes
{
	my ($self, $session) = @_;
	my (undef, @messages) = $session->run(q{SELECT count(bt_index_parent_check(c.oid, true, true))
		FROM pg_class c JOIN pg_am a ON a.oid = c.relam
		WHERE a.amname = 'btree' AND c.relkind = 'i' AND c.relnamespace IN ('r'::regnamespace, pg_my_temp_schema())})
		if $self->{checks_indexes};
	return grep { /ERROR:/ } @messages;
}

# Takes away as much as the failure does not need.  Returns the statements that do it, and what is left.
sub _minimised
{
	my ($self, $database, $schema, $tables, $query, $settings, $kind) = @_;
	my $end = time + $self->{minimise} * (!$query->{wide} ? 1 : $kind eq 'session' ? 6 : 3);
	my ($session, $made);
	my $of_now = sub {
		return $session if $session && !$session->{gone};
		wait_until(sub { $self->{node}->psql('postgres', 'SELECT 1', stderr => \my $refused) == 0 }, 60);
		$session = FuzzSession->new($self->{node}, $database, $self->{scratch}, '-smaller');
		$session->run(q{LOAD 'auto_explain'}) if $self->{explains};
		return $session;
	};
	my $fails = sub {
		return 0 if time > $end;
		my $now = $of_now->();
		# FuzzSql's queries leave the tables as they were
		if (!defined $made || $made ne "@_" || !$query->{wide})
		{
			$made = undef;
			my (undef, @messages) = $self->_setup($now, [ @$schema, @_ ]);
			return 0 if sqlstates(@messages) ne '';
			$made = "@_";
		}
		my ($wrong) = $self->_try($now, $query, $settings);
		return defined $wrong && $wrong =~ /^\Q$kind\E/;
	};

	my @smaller = minimise($of_now, $tables, $query, $settings, $fails);
	# the round's other queries need what was taken away
	$self->_setup($of_now->(), $schema);
	return @smaller;
}

sub _report
{
	my ($self, $what, $database, $schema, $tables, $query, $settings) = @_;
	my ($kind) = $what =~ /^(\w+):/;
	my @plan = $self->{nodes}->plan;
	my @smaller;

	$self->{failures}++;
	@smaller = eval { $self->_minimised($database, $schema, $tables, $query, $settings, $kind) }
		if $query && $self->{minimise}
			&& ($kind =~ /^(?:rows|order|error|fallback)$/ || $query->{wide} && $kind eq 'session');
	my @failed = map { "minimising failed: $_" } split /\n/, $@ // '';
	my @lines = ("seed $self->{round_seed}, $database, memory " . ($self->{memory} // 'as it is')
		. ($query ? ", $query->{name} ($query->{mode})" : ''), split /\n/, $what);
	push @lines, "reproduce with: test/fuzz/fuzz --seed $self->{round_seed} --rounds 1 --queries $self->{per_round} "
		. "--rows $self->{max_rows} --wide $self->{wide} --tlp $self->{tlp}"
			. ($self->{run_rows} ? " --runs=$self->{run_rows}" : '');
	push @lines, @failed;
	push @lines, 'the plan, if it was the last query:', @plan if $query && @plan;
	unshift @lines, (map { s/[^\x00-\x7f]/?/gr } split /\n/, $query->{sql}), '' if $query;
	my $text = join '', map { "-- $_\n" } @lines;
	$text .= "-- database $database, after FuzzTypes::fixtures\nCREATE SCHEMA r;\nSET search_path = r, fz, public;\n"
		. join('', map { "$_;\n" } @$schema);
	$text .= "-- the failure stays when these are done:\n" . join('', map { /^--/ ? "$_\n" : "$_;\n" } @smaller)
		if @smaller;
	$text .= join('', map { "SET $_;\n" } @$settings) . "$query->{sql};\n" if $query;
	if ($self->{save})
	{
		make_path($self->{save});
		my $name = "$self->{save}/failure-$self->{round_seed}-$self->{failures}.sql";
		open my $file, '>:utf8', $name or croak "$name: $!";
		print $file $text;
		close $file;
	}
	utf8::encode($text);
	$self->{report}->($text);
	return;
}

# --- rounds ---------------------------------------------------------------------------------------

# What a session is told when another's crash ends it.
my $gone = qr/because of crash of another server process|the database system is (?:in recovery|not yet accepting)/;

# Waits for a server that another session made start again.
sub _revive
{
	my ($self) = @_;
	$self->{bystander}++;
	wait_until(sub { $self->{node}->psql('postgres', 'SELECT 1') == 0 }, 60);
	return;
}

# True if a fault from outside met the session since this was asked last, and that is tolerated.
sub _disturbed
{
	my ($self, $session) = @_;
	my @states = splice @{ $session->{disturbances} };

	return 0 unless $self->{tolerate_loss};
	$self->{disturbances}{$_}++ for @states;
	return @states > 0;
}

sub _round
{
	my ($self) = @_;
	my $begin = time;
	seed_random($self->{round_seed});
	my $database = $self->{database} = $self->_database(one_of(sort keys %database_options));
	$self->_set_memory;
	my $wide = chance($self->{wide});
	my ($tables, @schema) = $wide ? wide_schema($self->{max_rows})
		: random_schema($self->{collations}, $self->{max_rows}, $self->{foreign} ? $database : undef);
	my $context = { tables => $tables, collations => $self->{collations} };
	push @schema, helpers($context) unless $wide;
	$self->_new_log;
	my $session = FuzzSession->new($self->{node}, $database, $self->{scratch});
	$session->run(q{LOAD 'auto_explain'}) if $self->{explains};
	$session->run(q{SET gpusort.force = on; SELECT g FROM generate_series(1, 10) g ORDER BY g DESC});
	my $descriptors = $session->descriptors;
	my (undef, @messages) = $self->_setup($session, \@schema);
	# with the smallest pool, the chunks left are few or none
	my $hog = ($self->{memory} // '') eq '0 16' ? $self->_hog($database, between(0, 2)) : undef;

	return $self->_revive if grep { /$gone/ } @messages;
	return if $self->_disturbed($session);
	# A view's key may mix collations (42P21, 42P22): then there is no such view, for both.
	croak "seed $self->{round_seed}: the schema cannot be made:\n@messages\n" . join ";\n", @schema
	if grep { /ERROR:/ && !/ERROR:  42P2[12]:/ } @messages;
	if (my @bad = $self->_bad_indexes($session))
	{
		return if $self->_disturbed($session);
		$self->_report("index: @bad", $database, \@schema, $tables);
		return;
	}
	my $large = !$wide && grep { $_->{rows} > 10000 } @$tables;
	# a machine with much else to do makes databases and tables for longer than a short run is
	$self->{deadline} += time - $begin unless $self->{queries};
	for (1 .. ($large ? 1 + int($self->{per_round} / 4) : $self->{per_round}))
	{
		my $query = $wide ? wide_query($context, tlp => $self->{tlp}) : random_query($context);
		my @variants = map { [ ($wide ? wide_settings($self->{force_parallel}) : random_settings($self->{force_parallel})),
			@{ $query->{settings} || [] } ] } 1 .. 2;

		last if time > $self->{deadline};
		$self->{queries}++;
		my $start = time;
		my ($wrong, $settings) = $self->_try($session, $query, @variants);
		if ($self->{verbose})
		{
			$self->{report}->(sprintf "%.2f s: %s\n%s\n", time - $start, join(', ', $query->{name}, map { "[@$_]" } @variants),
				$query->{sql} =~ s/[^\x00-\x7f]/?/gr);
		}
		$self->{kinds}{ $query->{name} }++;
		# what the statements that did not run would have done is not there
		last if $self->_disturbed($session);
		next unless defined $wrong;
		return $self->_revive if $wrong =~ $gone;
		my @crash = $wrong =~ /^(?:session|native):/ ? $self->_new_log : ();
		$self->_report(join("\n", $wrong, @crash), $database, \@schema, $tables, $query, $settings);
		# minimising it has made it happen again
		$self->_new_log if @crash;
		last if $self->{failures} >= $self->{max_failures};
		if ($wrong =~ /^(?:session|native):/)
		{
			undef $session;
			wait_until(sub { $self->{node}->psql('postgres', 'SELECT 1', stderr => \my $refused) == 0 }, 30);
			last if !$wide;
			# the tables are still there
			$session = FuzzSession->new($self->{node}, $database, $self->{scratch});
			$session->run(q{LOAD 'auto_explain'; SET gpusort.force = on; SELECT g FROM generate_series(1, 10) g ORDER BY g})
				if $self->{explains};
			$descriptors = $session->descriptors;
		}
	}
	undef $hog;
	undef $self->{wire};
	if ($session && !$session->{gone})
	{
		my @left = $self->_leftovers($session, $descriptors);
		@left = () if $self->_disturbed($session);
		$self->_report('leftover: ' . join("\n", @left), $database, \@schema, $tables) if @left;
		$self->_count($session);
		$session->run($self->_prologue('off') . 'DROP SCHEMA IF EXISTS r CASCADE');
	}
	my @log = $self->_new_log;
	$self->_report('log: ' . join('', @log), $database, \@schema, $tables) if @log;
	return;
}

# The server's statistics: how many sorts were gpusort's, and why others were not.
sub _count
{
	my ($self, $session) = @_;
	return if $self->{server};
	my ($stats) = $session->run(
		q{SELECT sorts, runs, index_builds, formed_rows, fallback_reasons FROM gpusort_stats; SELECT gpusort_stats_reset()});
	my ($sorts, $runs, $indexes, $formed, $reasons) = split /\0/, $stats // '';

	$self->{sorts} += $sorts || 0;
	$self->{sorted_runs} += $runs || 0;
	$self->{indexes} += $indexes || 0;
	$self->{formed} += $formed || 0;
	while (($reasons // '') =~ /"([^"]+)": (\d+)/g)
	{
		$self->{fallbacks}{$1} += $2;
	}
	return;
}

# Runs until the time is over, so many rounds are done, or enough failures are found.  True if none is.
sub run
{
	my ($self) = @_;
	my $start = time;
	my $ended = 0;
	$self->{deadline} = $self->{rounds} ? $start + 1e9 : $start + $self->{seconds};

	for (my $round = 0; $self->{rounds} ? $round < $self->{rounds} : time < $self->{deadline}; $round++)
	{
		$self->{round_seed} = $self->{seed} + $round;
		if (!eval { $self->_round; 1 })
		{
			if ($self->{tolerate_loss} && $@ =~ /$FuzzSession::disturbance/)
			{
				$self->{disturbances}{ $1 // $2 // $3 // $4 }++;
				next;
			}
			# such a round is no reason to end, but several are
			$self->_report("fuzzer: $@", 'any', [], []);
			last if ++$ended > 3;
		}
		$self->{rounds_done}++;
		last if $self->{failures} >= $self->{max_failures};
	}
	$self->{took} = time - $start;
	$self->_report("runs: none of $self->{sorts} sorts had several", 'any', [], [])
		if $self->{run_rows} && $self->{sorts} >= 100 && $self->{sorted_runs} == $self->{sorts};
	$self->_report("indexes: gpusort built none in $self->{rounds_done} rounds", 'any', [], [])
		if !$self->{server} && $self->{rounds_done} >= 20 && $self->{indexes} == 0;
	return $self->{failures} == 0;
}

sub summary
{
	my ($self) = @_;
	my $fallbacks = join ', ', map { "$_ $self->{fallbacks}{$_}" } sort keys %{ $self->{fallbacks} };
	my $errors = join ', ', map { "$_ $self->{errors}{$_}" } sort keys %{ $self->{errors} };
	return sprintf "seeds %d to %d, %.0f s: %d rounds, %d queries (%d too slow, "
		. "%d that vary natively), %d runs with gpusort, %d sorts in the service in %d runs, %d rows formed, %d indexes, "
		. "fallbacks: %s; errors that both have: %s; %d failures",
		$self->{seed}, $self->{seed} + $self->{rounds_done} - 1, $self->{took},
			@$self{qw(rounds_done queries skipped varying runs sorts sorted_runs formed indexes)}, $fallbacks || 'none',
			$errors || 'none', $self->{failures};
}

1;
