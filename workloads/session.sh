# A session at a shell, which reads its commands one by one: words of a text ($1) are counted, numbers sieved, files looked at.
TEXT=$1
function words { while read -r line; do for word in $line; do print -r -- "$word"; done; done; }
lines=0 most=0
while read -r line; do lines=$((lines + 1)); [[ ${#line} -gt $most ]] && most=${#line}; done < "$TEXT"
print "$lines lines, the longest of $most characters"
for pattern in 'a*' '*s' '*ing' '??'; do
    words < "$TEXT" | { count=0; while read -r word; do [[ $word = $pattern ]] && count=$((count + 1)); done; print "$pattern: $count"; }
done
primes= n=2
while [[ $n -lt 100 ]]; do
    is_prime=1
    for prime in $primes; do [[ $((n % prime)) -eq 0 ]] && is_prime=0 && break; done
    [[ $is_prime = 1 ]] && primes="$primes $n"
    n=$((n + 1))
done
print "primes:$primes"
for i in 1 2 3 4 5 6 7 8; do square=$(print $((i * i))); print "$i: $square"; done
cat "$TEXT" | while read -r line; do print -r -- "${line%% *}"; done > /dev/null
[[ -r $TEXT && ! -x $TEXT ]] && print "a text"
exit 0
