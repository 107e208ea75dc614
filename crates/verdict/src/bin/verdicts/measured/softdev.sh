# Hosts that are agents on this machine, over the software device. What is slow ($SLOW) sets $link
# of one of them. The rate and the latency of a link are those of the messages that its host sends.
cat >start.sh <<'END'
host=$1
shift
link='4Gb/s,latency=20us'
eval "$SLOW"
exec "$@" --link "$link"
END
measured='send -s 16KiB'
via='sh start.sh {host}'
