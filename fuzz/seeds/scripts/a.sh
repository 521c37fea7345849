a=1; f() { echo "$1" ${a:-x} $((a+2)); }; for i in $(seq 3); do f "$i" | cat; done; case $a in 1|2) echo `echo x`;; *) ;; esac; if [ -f /etc/hosts ] && ! test 1 -gt 2; then cat <<EOF >/tmp/x 2>&1
$a ${a%%x*}
EOF
fi; while test $a = 2; do true; done & trap "echo t" EXIT
