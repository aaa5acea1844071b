# WorkloadRows - compares the rows of two runs of a query, for bench/workload.
#
# Rows are files as COPY writes them, a line each, and are compared as multisets: equal rows have equal
# lines, but for floats, whose sums come out a little otherwise in another order.  Files are sorted by
# sort(1), so that millions of rows need no memory.
package WorkloadRows;

use strict;
use warnings;

use File::Copy ();

# $scratch: a directory; $types: types of the columns
sub new
{
	my ($class, $scratch, @types) = @_;
	my $self = bless { scratch => $scratch, count => 0,
		floats => [ grep { $types[$_] =~ /^(?:double precision|real)(?:\[\])?$/ } 0 .. $#types ],
		digits => (grep { /^real/ } @types) ? 4 : 10 }, $class;

	# aggregates of rows and documents can have floats in them
	$self->{floats} = [ @{ $self->{floats} },
		grep { $types[$_] =~ /^(?:jsonb?|record|point|box|circle|polygon|path|line|lseg)\b/ } 0 .. $#types ];
	return $self;
}

sub same_bytes
{
	my ($one, $other) = @_;
	return system('cmp', '-s', $one, $other) == 0;
}

sub count
{
	my ($file) = @_;
	my $lines = 0;

	open my $in, '<', $file or return 0;
	while (read $in, my $block, 1 << 20) { $lines += $block =~ tr/\n// }
	return $lines;
}

# A field with its floats rounded
sub rounded
{
	my ($field, $digits) = @_;

	my $number = qr/[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?/;
	$field =~ s/(?<![\w.])($number)(?![\w.])/my $value = sprintf '%.*g', $digits, $1; $value eq '-0' ? '0' : $value/ge;
	return $field;
}

# The file sorted; with $digits, with the columns that are floats rounded to so many
sub sorted
{
	my ($self, $file, $digits) = @_;
	my $to = "$self->{scratch}/sorted-" . ++$self->{count};
	local $ENV{LC_ALL} = 'C';

	open my $sort, '|-', 'sort', '-S', '25%', '-T', $self->{scratch}, '-o', $to or die "sort: $!\n";
	open my $in, '<', $file or die "$file: $!\n";
	if ($digits && @{ $self->{floats} })
	{
		while (my $line = <$in>)
		{
			chomp $line;
			my @fields = split /\t/, $line, -1;
			$fields[$_] = rounded($fields[$_], $digits) for grep { defined $fields[$_] } @{ $self->{floats} };
			print $sort join("\t", @fields), "\n";
		}
	}
	else { File::Copy::copy($in, $sort) or die "$file: $!\n" }
	close $sort or die "sort failed\n";
	return $to;
}

# Lines of the one sorted file that the other lacks, as a new file
sub missing
{
	my ($self, $one, $other) = @_;
	my $to = "$self->{scratch}/missing-" . ++$self->{count};
	local $ENV{LC_ALL} = 'C';

	open my $comm, '-|', 'comm', '-23', $one, $other or die "comm: $!\n";
	open my $out, '>', $to or die "$to: $!\n";
	File::Copy::copy($comm, $out);
	close $comm or die "comm failed\n";
	close $out or die "$to: $!\n";
	return $to;
}

# True where two floats are as near to each other as sums in two orders are, or next to nothing: what
# is left when such sums cancel out.
sub near
{
	my ($self, $one, $other) = @_;
	return 1 if $one eq $other;
	my $number = qr/^[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?$/;
	return rounded($one, $self->{digits} - 2) eq rounded($other, $self->{digits} - 2) if $one !~ $number
		|| $other !~ $number;
	my $size = abs($one) > abs($other) ? abs $one : abs $other;
	return abs($one - $other) <= $size * 10**(1 - $self->{digits}) || abs($one - $other) < 1e-10;
}

# True if both files have the same rows
sub same_rows
{
	my ($self, $one, $other) = @_;

	return 1 if same_bytes($one, $other);
	my ($a, $b) = map { $self->sorted($_) } $one, $other;
	return 1 if same_bytes($a, $b);
	return 0 if !@{ $self->{floats} } || count($a) != count($b);
	($a, $b) = map { $self->sorted($_, $self->{digits}) } $one, $other;
	return 1 if same_bytes($a, $b);

	# Those that stand on two sides of a border of rounding: as many here as there, and near each other when
	# they are sorted by what is exact.
	($a, $b) = ($self->missing($a, $b), $self->missing($b, $a));
	my $rows = count($a);
	return 0 if $rows != count($b) || $rows > 1e6;
	my @pairs = map { $self->paired($_) } $a, $b;
	my %float = map { $_ => 1 } @{ $self->{floats} };
	for my $row (0 .. $rows - 1)
	{
		my ($here, $there) = map { $pairs[$_][$row] } 0, 1;
		return 0 if @$here != @$there;
		return 0 if grep { $float{$_} ? !$self->near($here->[$_], $there->[$_]) : $here->[$_] ne $there->[$_] } 0 .. $#$here;
	}
	return 1;
}

# The rows of a file, those with the same exact columns in the order of their floats
sub paired
{
	my ($self, $file) = @_;
	my %float = map { $_ => 1 } @{ $self->{floats} };
	my @rows;

	open my $in, '<', $file or die "$file: $!\n";
	while (my $line = <$in>)
	{
		chomp $line;
		my @fields = split /\t/, $line, -1;
		push @rows, [ join("\t", @fields[ grep { !$float{$_} } 0 .. $#fields ]), \@fields ];
	}
	no warnings 'numeric';
	my $by_floats = sub {
		my ($x, $y) = @_;
		for (@{ $self->{floats} })
		{
			my $order = $x->[$_] <=> $y->[$_] || 0;
			return $order if $order && !$self->near($x->[$_], $y->[$_]);
		}
		return 0;
	};
	return [ map { $_->[1] } sort { $a->[0] cmp $b->[0] || $by_floats->($a->[1], $b->[1]) } @rows ];
}

# True if the columns in @keys have the same values row by row: for rows that are ordered by them
sub same_order
{
	my ($self, $one, $other, @keys) = @_;
	my %float = map { $_ => 1 } @{ $self->{floats} };

	return 1 if !@keys || same_bytes($one, $other);
	open my $here, '<', $one or die "$one: $!\n";
	open my $there, '<', $other or die "$other: $!\n";
	while (defined(my $row = <$here>))
	{
		my $pair = <$there> // return 0;
		next if $row eq $pair;
		chomp($row, $pair);
		my @fields = map { [ split /\t/, $_, -1 ] } $row, $pair;
		return 0 if grep { my ($x, $y) = ($fields[0][$_], $fields[1][$_]); $float{$_} ? !$self->near($x, $y)
			: $x ne $y } @keys;
	}
	return 1;
}

# True if every row of the one file is one of the other's
sub part_of
{
	my ($self, $part, $whole) = @_;

	for my $digits (0, $self->{digits}, $self->{digits} - 4 > 2 ? $self->{digits} - 4 : 2)
	{
		next if $digits && !@{ $self->{floats} };
		return 1 if count($self->missing($self->sorted($part, $digits), $self->sorted($whole, $digits))) == 0;
	}
	return 0;
}

1;
