# Words counted, split and joined: perl text.pl ROUNDS. Prints one line of JSON: the rounds and their nanoseconds.
use strict;
use warnings;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

my $rounds = shift;
my $line = join ' ', map { "word$_ " . 'x' x ($_ % 50) } 1 .. 400;
my $start = clock_gettime(CLOCK_MONOTONIC);
for my $round (1 .. $rounds) {
    my %counts;
    $counts{"$_/$round"}++ for split / /, $line;
    my @sorted = sort { $counts{$a} <=> $counts{$b} || $a cmp $b } keys %counts;
    my $joined = join ',', map { uc } @sorted;
    $joined =~ s/WORD(\d+)/<$1>/g;
}
printf qq({"pairs": %d, "wall_ns": %.0f}\n), $rounds, 1e9 * (clock_gettime(CLOCK_MONOTONIC) - $start);
