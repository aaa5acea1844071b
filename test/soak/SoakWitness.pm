# SoakWitness - a session that sorts as long as the soak runs, and knows the right answers.
#
#   SoakWitness::tables($node);		# what witnesses sort, and how they read cursors
#   my $witness = SoakWitness->new($node, 'cursors');
#   $witness->step;					# does what is due, waits for nothing; to be called often
#   $witness->rest;					# ends what it is about, and is idle
#   $witness->{right}, $witness->{errors}{58000}, $witness->{wrong}
#
# Of the kinds, `sorts` reads whole sorts, `workers` has parallel workers ingest the rows, `windows`
# has them compute a window above the sort, too, `cursors` holds a cursor for some seconds before it
# reads on, rewinds it or drops it, and `devices` asks the service for its devices.  The one error that
# a lost service may cause is 58000, once rows have been read.  Because a witness does the same thing
# all the time, what its backend holds tells of leaks.
package SoakWitness;

use strict;
use warnings;

use GpuSortNode;
use Time::HiRes qw(sleep time);

# An answer that stays away for so long is none.
our $answer_seconds = 150;

my $rows = 60000;
my $sort = q{SELECT md5(string_agg(id || pad, ',')) FROM (SELECT id, pad FROM witness ORDER BY k, id) s};
# more rows than a chunk has, so that there are some to read on
my $window = q{SELECT md5(string_agg(id || ' ' || s, ','))
	FROM (SELECT id, sum(id) OVER (PARTITION BY k ORDER BY id) AS s FROM witness ORDER BY k, id OFFSET 0) s};
my $declare = 'BEGIN; DECLARE c SCROLL CURSOR FOR SELECT id, k, pad FROM witness ORDER BY k, id';
my %answers;

sub tables
{
	my ($node) = @_;
	$node->safe_psql('postgres', qq{
		CREATE EXTENSION gpusort;
		CREATE TABLE witness AS SELECT i AS id, (i * 7919::bigint) % 30011 AS k,
				'row number ' || i || ' ' || repeat('x', i % 200) AS pad
			FROM generate_series(1, $rows) i;
		ANALYZE witness;
		-- reads so many rows on; the digest of them all follows from that of those before
		CREATE FUNCTION read_on(c refcursor, so_many int, digest text) RETURNS text LANGUAGE plpgsql AS \$\$
		DECLARE
			r record;
		BEGIN
			FOR i IN 1 .. so_many LOOP
				FETCH c INTO r;
				EXIT WHEN NOT FOUND;
				digest := md5(digest || r.id || r.pad);
			END LOOP;
			RETURN digest;
		END \$\$;
	});
	my $native = $node->session;
	$native->run('SET gpusort.enable = off');
	$answers{sort} = $native->run($sort);
	$answers{window} = $native->run($window);
	$native->run($declare);
	$answers{first} = $native->run(q{SELECT read_on('c', 100, '')});
	$answers{all} = $native->run("SELECT read_on('c', $rows, '$answers{first}')");
	$native->close;
	return;
}

sub new
{
	my ($class, $node, $kind) = @_;
	my $self = bless { kind => $kind, session => $node->session, due => time, right => 0, wrong => [], errors => {} },
		$class;

	$self->{session}->run('SET gpusort.force = on');
	$self->{session}->run('SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; '
		. 'SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0') if $kind =~ /^(?:workers|windows)$/;
	return $self;
}

sub backend
{
	my ($self) = @_;
	return $self->{session}->backend;
}

sub _ask
{
	my ($self, $sql, $answer) = @_;
	$self->{session}->send($sql);
	@$self{qw(asked sql answer)} = (time, $sql, $answer);
	return;
}

# Begins what this kind of witness does.
sub _begin
{
	my ($self) = @_;
	return $self->_ask('SELECT count(*) >= 0 FROM gpusort_devices', 't') if $self->{kind} eq 'devices';
	return $self->_ask($window, $answers{window}) if $self->{kind} eq 'windows';
	return $self->_ask($sort, $answers{sort}) if $self->{kind} ne 'cursors';
	if (!$self->{open})
	{
		$self->{open} = 1;
		return $self->_ask(qq{$declare; SELECT read_on('c', 100, '')}, $answers{first});
	}
	my $how = rand;
	if ($how < 0.3)
	{
		# from the first row again
		return $self->_ask(qq{MOVE ABSOLUTE 0 c; SELECT read_on('c', 100, '')}, $answers{first});
	}
	$self->{open} = 0;
	return $self->_ask(qq{SELECT read_on('c', $rows, '$answers{first}'); COMMIT}, $answers{all}) if $how < 0.8;
	return $self->_ask('ROLLBACK', '');
}

# Takes the answer that has come.
sub _judge
{
	my ($self) = @_;
	my ($out, $err) = $self->{session}->result;
	my @states = $err =~ /^(?:ERROR|FATAL|PANIC):  (\w{5})/mg;

	delete $self->{asked};
	$self->{errors}{$_}++ for @states;
	if (@states)
	{
		push @{ $self->{wrong} }, "$self->{kind}: $self->{sql}\n$err"
			if $states[0] ne '58000' || grep { !/^(?:58000|25P02)$/ } @states;
		$self->{open} = 0;
		return $self->_ask('ROLLBACK', '');
	}
	if ($out eq $self->{answer})
	{
		$self->{right}++;
	}
	else
	{
		push @{ $self->{wrong} }, "$self->{kind}: $self->{sql}\n"
			. ($out eq '' ? "no answer: $err" : substr($out, 0, 200) . " instead of $self->{answer}");
	}
	return;
}

sub step
{
	my ($self) = @_;
	if (defined $self->{asked})
	{
		if ($self->{session}->answered)
		{
			$self->_judge;
			$self->{due} = time + rand($self->{open} ? 8 : 1);
		}
		elsif (time > $self->{asked} + $answer_seconds && !$self->{late}++)
		{
			push @{ $self->{wrong} }, "$self->{kind}: $self->{sql}\nno answer in $answer_seconds s";
		}
	}
	elsif (time > $self->{due})
	{
		$self->_begin;
	}
	return;
}

# Waits for the answer that is due.
sub _settle
{
	my ($self) = @_;
	while (defined $self->{asked})
	{
		$self->step;
		sleep 0.02;
	}
	return;
}

sub rest
{
	my ($self) = @_;
	$self->_settle;
	if ($self->{open})
	{
		$self->{open} = 0;
		$self->_ask('ROLLBACK', '');
		$self->_settle;
	}
	return;
}

# Sorts with gpusort and without, whatever its kind, so that it has what it needs for that, and the
# staging pool of the service that is there now.
sub exercise
{
	my ($self) = @_;
	for my $enable (qw(off on))
	{
		$self->_ask("SET gpusort.enable = $enable; $sort", $answers{sort});
		$self->_settle;
	}
	return;
}

# kB in its backend's memory contexts.
sub contexts
{
	my ($self) = @_;
	return $self->{session}->run('SELECT sum(total_bytes) / 1024 FROM pg_backend_memory_contexts') =~ s/\..*//r;
}

1;
